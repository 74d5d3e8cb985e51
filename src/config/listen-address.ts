/** The default address of a node in a configured list: it listens on the port of its own URL. */

import { listeningHost } from "./values/address.ts";
import type { NodeMap } from "./values/node-map.ts";
import { listenerOf } from "./values/node-map.ts";
import type { Found, Source } from "./sources/source.ts";
import type { Value } from "./values/value.ts";

export function ownListener(
  values: ReadonlyMap<string, Value>,
  sources: ReadonlyMap<string, Source>,
): Found[] {
  const nodes = (values.get("nodes") ?? {}) as NodeMap;
  const name = values.get("name") as string | undefined;
  if (name === undefined || !Object.hasOwn(nodes, name)) return [];
  const url = nodes[name]!;
  const source = sources.get("nodes")!;
  const listener = listenerOf(url);
  return [
    { path: "http.url", value: url, source },
    ...(listener
      ? [
          { path: "http.host", value: listeningHost(listener.host), source },
          // As text where the source is one that speaks in text.
          {
            path: "http.port",
            value: source.from === "file" ? listener.port : String(listener.port),
            source,
          },
        ]
      : []),
  ];
}
