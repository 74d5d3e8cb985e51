/**
 * Serves the files of the dashboard, built by `npm run build:dashboard`, unchanged. They contain no data of the
 * cluster, so every caller that reaches the port may read them; the page reads its data from the API, as any caller.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

export interface DashboardOptions {
  readonly enabled: boolean;
  /** Where the built files are; those of this package unless told otherwise. */
  readonly directory?: string;
}

const BUILT = fileURLToPath(new URL("../../dashboard/dist", import.meta.url));
const YEAR_MS = 365 * 86_400_000;

/**
 * Text that people put into jobs, logs and names is shown on this page. Should some of it ever become markup, it still runs
 * nothing and loads nothing: scripts and styles come from files of ours alone, and strings are no scripts (trusted types).
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
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

export async function serveDashboard(app: FastifyInstance, options: DashboardOptions): Promise<void> {
  const directory = options.directory ?? BUILT;
  await app.register(async (scope) => {
    scope.addHook("onRequest", (_request, reply, done) => {
      reply.headers(PAGE_HEADERS);
      done();
    });
    await scope.register(fastifyStatic, {
      root: join(directory, "assets"),
      prefix: "/assets/",
      preCompressed: true,
      // Their names change with their content.
      immutable: true,
      maxAge: YEAR_MS,
      suppressWarning: true,
    });
    const page = file(directory, "index.html");
    for (const path of ["/", "/index.html"]) scope.get(path, { schema: { hide: true } }, page);
    scope.get("/favicon.svg", { schema: { hide: true } }, file(directory, "favicon.svg"));
  });
}

/** Looked for with every request: a page that is built while the node runs is there at once. */
function file(directory: string, name: string) {
  return (_request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (!existsSync(join(directory, name))) {
      return reply
        .code(503)
        .type("text/html; charset=utf-8")
        .header("cache-control", "no-store")
        .send(NOT_BUILT);
    }
    // The name stays and the content does not: always asked for, mostly answered with 304.
    return reply.header("cache-control", "no-cache").sendFile(name, directory, { cacheControl: false });
  };
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Baton: the dashboard is not built</title>
<h1>The dashboard is not built</h1>
<p>This node runs, and its API answers; only the page is missing. In the checkout that it was started from, type:</p>
<pre>npm run build:dashboard</pre>
<p>and load this page again. The node need not be restarted. The API is shown at <a href="docs">docs</a>.</p>
</html>
`;
