import type { Method } from "../api/operation.ts";

interface Filled {
  readonly params?: unknown;
  readonly query?: unknown;
}

/** `"GET /jobs/{id}"` with its parts filled in. The dashboard uses it too, so it knows nothing of Node. */
export function routePath(route: string, parts: Filled): { method: Method; path: string } {
  const [method, pattern] = route.split(" ") as [Method, string];
  const params = (parts.params ?? {}) as Record<string, string>;
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(
    (parts.query ?? {}) as Record<string, string | number | undefined>,
  )) {
    if (value !== undefined) query.set(name, String(value));
  }
  return { method, path: query.size === 0 ? path : `${path}?${query.toString()}` };
}
