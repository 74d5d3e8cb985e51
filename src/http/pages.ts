/**
 * The pages for people: the OpenAPI document, the page that shows it, and the dashboard. They have a Fastify instance of
 * their own, which the first request for one of them builds: its plugins would take a third of the start of a node.
 * The instance that listens authenticates these requests and passes them on.
 */

import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from "fastify";
import type { Operation } from "../api/operation.ts";
import type { DashboardOptions } from "./dashboard.ts";

export interface PagesOptions {
  readonly version: string;
  readonly operations: readonly Operation[];
  readonly dashboard: DashboardOptions;
  readonly onError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;
  readonly onNotFound: (request: FastifyRequest, reply: FastifyReply) => void;
}

/** Requests and replies are checked and written by api/schema/operation-schema.ts; Fastify need not load its compilers. */
export const NO_COMPILERS: Pick<FastifyServerOptions, "schemaController"> = {
  schemaController: {
    compilersFactory: {
      buildValidator: (() => () => () => true) as never,
      buildSerializer: (() => () => JSON.stringify) as never,
    },
  },
};

const DOCS = ["/openapi.json", "/docs", "/docs/*"];
const DASHBOARD = ["/", "/index.html", "/favicon.svg", "/assets/*"];

export function servePages(app: FastifyInstance, options: PagesOptions): void {
  let pages: Promise<FastifyInstance> | null = null;
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const built = await (pages ??= buildPages(options));
    const headers = reply.getHeaders();
    reply.hijack();
    for (const [name, value] of Object.entries(headers))
      if (value !== undefined) reply.raw.setHeader(name, value);
    built.routing(Object.assign(request.raw, { id: request.id }), reply.raw);
  };
  for (const url of DOCS) app.get(url, handler);
  if (options.dashboard.enabled) {
    for (const url of DASHBOARD) app.get(url, { config: { access: "public" } }, handler);
  }
  app.addHook("onClose", async () => (await pages)?.close());
}

async function buildPages(options: PagesOptions): Promise<FastifyInstance> {
  const app = Fastify({
    ...NO_COMPILERS,
    logger: false,
    genReqId: (request) => (request as unknown as { readonly id: string }).id,
  });
  app.setErrorHandler(options.onError);
  app.setNotFoundHandler(options.onNotFound);
  const { serveDocs } = await import("./openapi.ts");
  await serveDocs(app, options);
  if (options.dashboard.enabled) {
    const { serveDashboard } = await import("./dashboard.ts");
    await serveDashboard(app, options.dashboard);
  }
  await app.ready();
  return app;
}
