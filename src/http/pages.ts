/**
 * The pages for people: dashboard and API reference, built by `npm run build:dashboard`. The files contain no data of the
 * cluster; a page reads its data from the API, as any caller.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { OPERATIONS } from "../api/operation-table.ts";
import { openApiDocument } from "./openapi.ts";
import { sendFile } from "./static-files.ts";

export interface DashboardOptions {
  readonly enabled: boolean;
  /** Where the built files are; those of this package unless told otherwise. */
  readonly directory?: string;
}

export function servePages(app: FastifyInstance, version: string, dashboard: DashboardOptions): void {
  // Made by the first request for it: the schemas of all operations take a tenth of a second.
  let document: string | null = null;
  app.get("/openapi.json", (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(version, OPERATIONS));
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

const BUILT = fileURLToPath(new URL("../../dashboard/dist", import.meta.url));

/**
 * Text of people is shown on this page. Should some of it become markup, it runs nothing and loads nothing: scripts and
 * styles come from files of ours alone, and strings are no scripts (trusted types).
 */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "object-src 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types baton",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** A page has one address, and its content changes: always asked for, mostly answered with 304. */
const REVALIDATED = "no-cache";
/** The names of assets change with their content. */
const IMMUTABLE = "public, max-age=31536000, immutable";

/** Looks for a page with every request: one that is built while the node runs is there at once. */
function builtPage(name: string, directory = BUILT) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    reply.headers(PAGE_HEADERS);
    if (await sendFile(request, reply, { directory, name, cacheControl: REVALIDATED })) return reply;
    return reply
      .code(503)
      .type("text/html; charset=utf-8")
      .header("cache-control", "no-store")
      .send(NOT_BUILT);
  };
}

function builtAssets(directory = BUILT) {
  const assets = join(directory, "assets");
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { "*": name } = request.params as { readonly "*": string };
    reply.headers(PAGE_HEADERS);
    if (await sendFile(request, reply, { directory: assets, name, cacheControl: IMMUTABLE })) return reply;
    reply.callNotFound();
    return reply;
  };
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Baton: this page is not built</title>
<h1>This page is not built</h1>
<p>This node runs, and its API answers; only the page is missing. In the checkout that it was started from, type:</p>
<pre>npm run build:dashboard</pre>
<p>and load this page again. The node need not be restarted. The API is described by <a href="/openapi.json">openapi.json</a>.</p>
</html>
`;
