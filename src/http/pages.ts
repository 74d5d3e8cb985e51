/** The pages for people: the dashboard, and the API reference with the OpenAPI document that it shows. */

import type { FastifyInstance } from "fastify";
import type { Operation } from "../api/operation.ts";
import { builtAssets, builtPage, type DashboardOptions } from "./dashboard.ts";
import { openApiDocument } from "./openapi.ts";

export interface PagesOptions {
  readonly version: string;
  readonly operations: readonly Operation[];
  readonly dashboard: DashboardOptions;
}

export function servePages(app: FastifyInstance, { version, operations, dashboard }: PagesOptions): void {
  // Made by the first request for it: the schemas of all operations take a tenth of a second.
  let document: string | null = null;
  app.get("/openapi.json", (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(version, operations));
    return reply.type("application/json; charset=utf-8").send(document);
  });
  // The addresses in the page are relative, so that they hold behind any prefix.
  app.get("/docs", (_request, reply) => reply.redirect("docs/", 308));
  app.get("/docs/", builtPage("reference.html"));
  app.get("/docs/assets/*", builtAssets());
  if (!dashboard.enabled) return;
  // Whoever reaches the port may read the page. It has to load before anybody can sign in.
  const config = { access: "public" } as const;
  for (const url of ["/", "/index.html"])
    app.get(url, { config }, builtPage("index.html", dashboard.directory));
  app.get("/favicon.svg", { config }, builtPage("favicon.svg", dashboard.directory));
  app.get("/assets/*", { config }, builtAssets(dashboard.directory));
}
