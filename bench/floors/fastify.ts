/** A bare route with the schemas of `POST /jobs`: the same body is read, validated and answered, and nothing is kept. */

import { randomUUIDv7 } from "node:crypto";
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { jsonSchema } from "../../src/api/schema/operation-schema.ts";
import { submitJobs } from "../../src/api/operations/jobs/submit-jobs.ts";
import { cpuMeter, type HttpSide } from "../http-side.ts";

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
  app.post("/jobs", { schema }, async () => ({ job_id: `bench-${randomUUIDv7()}`, status: "queued" }));
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    reset: async () => `http://127.0.0.1:${port}`,
    ...cpuMeter(),
    async close() {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}
