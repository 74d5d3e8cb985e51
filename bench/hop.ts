/** The two ends of a hop between nodes, each in a process of its own: an ingress that callers speak to, and an owner that answers. */

import Fastify from "fastify";
import { Pool } from "undici";
import type { NodeName } from "../src/core/ids.ts";
import { silentLog } from "../src/platform/log.ts";
import { SYSTEM } from "../src/platform/platform.ts";
import { systemRandom } from "../src/platform/random.ts";
import { MeshTransport } from "../src/transport/mesh/mesh-transport.ts";
import type { PeerHandler } from "../src/transport/transport.ts";
import { serve, type HttpSide } from "./http-side.ts";

export interface HopOptions {
  readonly secret: string;
  /** Absent for the owner itself. */
  readonly ownerUrl?: string;
}

const OWNER = "owner" as NodeName;
const REQUEST_HEADERS = { "content-type": "application/json" };
const JSON_REPLY = { "content-type": "application/json; charset=utf-8" };
const echo: PeerHandler = async ({ body }) => ({ status: 200, headers: JSON_REPLY, body });

export async function open({ secret, ownerUrl }: HopOptions): Promise<HttpSide> {
  const identity = { name: ownerUrl ? ("ingress" as NodeName) : OWNER, incarnation: systemRandom.uuid() };
  const mesh = new MeshTransport({ ...SYSTEM, identity, log: silentLog }, [secret]);
  mesh.serve(echo);
  const app = Fastify({ logger: false });
  app.removeAllContentTypeParsers();
  // As it came: what only passes through is not parsed.
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) =>
    done(null, body),
  );
  app.post("/jobs", async (request, reply) => reply.headers(JSON_REPLY).send(request.body));
  const http = new Pool(ownerUrl ?? "http://127.0.0.1", { connections: 50, pipelining: 1 });
  if (ownerUrl) {
    // Plain HTTP without signatures, for comparison.
    app.post("/http/jobs", async (request, reply) => {
      const answer = await http.request({
        method: "POST",
        path: "/jobs",
        headers: REQUEST_HEADERS,
        body: request.body as string,
      });
      return reply
        .code(answer.statusCode)
        .headers(JSON_REPLY)
        .send(await answer.body.text());
    });
    app.post("/mesh/jobs", async (request, reply) => {
      const outcome = await mesh.call(
        ownerUrl,
        { method: "POST", path: "/jobs", headers: REQUEST_HEADERS, body: request.body as string },
        { deadlineMs: 5_000, to: OWNER },
      );
      if (outcome.outcome !== "reply") return reply.code(502).send(outcome.reason);
      return reply.code(outcome.status).headers(JSON_REPLY).send(outcome.body);
    });
  }
  mesh.attach(app.server);
  await mesh.start();
  return serve(app, () => Promise.all([mesh.stop(), http.close()]));
}
