import { BatonError } from "batonjs/client";
import { baton } from "../../../../lib/baton.ts";

interface Context {
  readonly params: Promise<{ readonly id: string }>;
}

export async function GET(_request: Request, { params }: Context): Promise<Response> {
  const { id } = await params;
  try {
    const { status } = await baton().job(id);
    const greeting = status === "completed" ? await baton().wait(id) : null;
    return Response.json({ status, greeting });
  } catch (error) {
    if (error instanceof BatonError && (error.code === "NOT_FOUND" || error.code === "BAD_ID"))
      return Response.json({ error: "there is no such greeting" }, { status: 404 });
    throw error;
  }
}
