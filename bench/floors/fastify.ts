/** A bare route with the schemas of `POST /jobs`: the same body is read, validated and answered, and nothing is kept. */

import { randomUUIDv7 } from "node:crypto";
import Fastify from "fastify";
import { jsonSchema } from "../../src/api/schema/operation-schema.ts";
import { submitJobs } from "../../src/api/operations/jobs/submit-jobs.ts";
import { serve, type HttpSide } from "../http-side.ts";

export async function open(): Promise<HttpSide> {
  const app = Fastify({
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: true, allErrors: false },
    },
  });
  const schema = {
    body: jsonSchema(submitJobs.body!, "input"),
    response: { 200: jsonSchema(submitJobs.replies[200], "output") },
  };
  app.post("/jobs", { schema }, async () => ({
    job_id: `bench-${randomUUIDv7()}`,
    status: "queued",
    existed: false,
  }));
  return serve(app);
}
