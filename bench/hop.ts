/** The two ends of a hop between nodes, each in a process of its own: an ingress that callers speak to, and an owner that answers. */

import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import type { NodeName } from "../src/core/ids.ts";
import { systemClock } from "../src/platform/clock.ts";
import { silentLog } from "../src/platform/log.ts";
import { systemRandom } from "../src/platform/random.ts";
import { HttpTransport } from "../src/transport/http/http-transport.ts";
import { openPeers } from "../src/transport/open-transport.ts";
import type { PeerHandler, Transport } from "../src/transport/transport.ts";
import { cpuMeter, type HttpSide } from "./http-side.ts";

export interface HopOptions {
  readonly secret: string;
  /** Absent for the owner itself. */
  readonly ownerUrl?: string;
}

const OWNER = "owner" as NodeName;
const JSON_REPLY = { "content-type": "application/json; charset=utf-8" };
const echo: PeerHandler = async ({ body }) => ({ status: 200, headers: JSON_REPLY, body });

export async function open({ secret, ownerUrl }: HopOptions): Promise<HttpSide> {
  const self = { name: ownerUrl ? ("ingress" as NodeName) : OWNER, incarnation: systemRandom.uuid() };
  const { transport: mesh } = openPeers({
    self,
    secrets: [secret],
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  mesh.serve(echo);
  const http = new HttpTransport({ clock: systemClock, connectionsMax: 50 });
  const app = Fastify({ logger: false });
  app.removeAllContentTypeParsers();
  // As it came: what only passes through is not parsed.
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) =>
    done(null, body),
  );
  app.post("/jobs", async (request, reply) => reply.headers(JSON_REPLY).send(request.body));
  if (ownerUrl) {
    passOn(app, "/http/jobs", http, ownerUrl);
    passOn(app, "/mesh/jobs", mesh, ownerUrl);
  }
  mesh.attach(app.server);
  await Promise.all([mesh.start(), http.start()]);
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    reset: async () => `http://127.0.0.1:${port}`,
    ...cpuMeter(),
    async close() {
      await Promise.all([mesh.stop(), http.stop()]);
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

function passOn(app: FastifyInstance, path: string, transport: Transport, ownerUrl: string): void {
  app.post(path, async (request, reply) => {
    const outcome = await transport.call(
      ownerUrl,
      {
        method: "POST",
        path: "/jobs",
        headers: { "content-type": "application/json" },
        body: request.body as string,
      },
      { deadlineMs: 5_000, to: OWNER },
    );
    if (outcome.outcome !== "reply") return reply.code(502).send(outcome.reason);
    return reply.code(outcome.status).headers(JSON_REPLY).send(outcome.body);
  });
}
