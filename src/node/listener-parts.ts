/** The listener of a node, by its settings. */

import type { Settings } from "../config/settings.ts";
import { HttpServer, type HttpServerOptions } from "../http/server.ts";

type BySettings =
  | "host"
  | "port"
  | "bodyLimitBytes"
  | "basePath"
  | "dashboard"
  | "rateLimit"
  | "trustedProxies"
  | "secure";

export function openListener({
  settings,
  ...rest
}: Omit<HttpServerOptions, BySettings> & { readonly settings: Settings }): HttpServer {
  const { http, dashboard } = settings;
  return new HttpServer({
    ...rest,
    host: http.host,
    port: http.port,
    bodyLimitBytes: http.bodyLimitBytes,
    basePath: http.basePath,
    dashboard,
    rateLimit: http.rateLimit,
    trustedProxies: http.trustedProxies,
    secure: http.url.startsWith("https:"),
  });
}
