import { BatonError } from "batonjs/client";
import { baton } from "../../../lib/baton.ts";

export async function POST(request: Request): Promise<Response> {
  try {
    const { id } = await baton().submit("greet", await request.json());
    return Response.json({ id }, { status: 202, headers: { location: `/api/greetings/${id}` } });
  } catch (error) {
    // What the task's schema refuses is the caller's mistake, and the message says which field.
    if (error instanceof BatonError && error.code === "BAD_PAYLOAD")
      return Response.json({ error: error.message }, { status: 400 });
    throw error;
  }
}
