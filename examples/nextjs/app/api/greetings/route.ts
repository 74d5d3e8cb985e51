import { BatonClientError } from "batonjs/client";
import { baton } from "../../../lib/baton.ts";

export async function POST(request: Request): Promise<Response> {
  try {
    const { job_id: id } = await baton().submit({ task: "greet", payload: await request.json() });
    return Response.json({ id }, { status: 202, headers: { location: `/api/greetings/${id}` } });
  } catch (error) {
    // What the task's schema refuses is the caller's mistake, and the message says which field.
    if (error instanceof BatonClientError && error.code === "BAD_PAYLOAD")
      return Response.json({ error: error.message }, { status: 400 });
    throw error;
  }
}
