/**
 * The path prefix under which a proxy mounts a node. It is removed before a request is routed, so that every route
 * answers below the prefix too, and without it as before.
 */

import type { IncomingMessage } from "node:http";
import { BatonError } from "../core/errors.ts";

/** `/baton/` as `/baton`, and `/` as the empty text. */
export function prefixOf(basePath: string): string {
  return basePath.replace(/\/+$/, "");
}

/** Null when there is nothing to cut off. */
export function cutPrefix(prefix: string): ((request: Pick<IncomingMessage, "url">) => string) | null {
  if (prefix === "") return null;
  return ({ url = "/" }) => (url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url);
}

/** `/jobs` as a prefix would make `/jobs/{id}` mean something else. */
export function checkPrefix(prefix: string, paths: readonly string[]): void {
  const first = prefix.split("/")[1];
  const taken = paths.find((path) => path.split("/")[1] === first);
  if (prefix === "" || taken === undefined) return;
  throw new BatonError(
    "BAD_CONFIG",
    `http.base_path is ${prefix}, and the API has ${taken}; choose another, as /baton`,
    { field: "http.base_path" },
  );
}
