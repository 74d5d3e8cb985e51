/** Validates the settings of access in combination. */

import { isLoopback } from "../../core/access/is-loopback.ts";
import { isAddressRange, isEverywhere } from "../values/address.ts";
import { weakness } from "../secrets/cluster-secret.ts";
import type { Settings } from "../settings.ts";
import type { Source } from "../sources/source.ts";
import { describeMistake } from "../sources/source.ts";
import type { Value } from "../values/value.ts";

/** Whether callers are asked who they are. */
export function asksCallers({ access, http }: Pick<Settings, "access" | "http">): boolean {
  return access.required === "always" || isEverywhere(http.host) || !isLoopback(http.host);
}

const REMEDY =
  "make one with: baton secret create --file baton.token, and set BATON_ACCESS__TOKEN_FILE to its path";

export function accessMistakes(
  values: ReadonlyMap<string, Value>,
  sources: ReadonlyMap<string, Source>,
): string[] {
  return [...tokenMistakes(values, sources), ...proxyMistakes(values, sources)];
}

type Check = (values: ReadonlyMap<string, Value>, sources: ReadonlyMap<string, Source>) => string[];

const proxyMistakes: Check = (values, sources) => {
  const proxies = values.get("http.trusted_proxies");
  const bad = (Array.isArray(proxies) ? proxies.map(String) : []).filter((each) => !isAddressRange(each));
  if (bad.length === 0) return [];
  const why = `must be addresses or ranges such as 10.0.0.0/8, and ${bad.join(" and ")} is none`;
  return [describeMistake(sources.get("http.trusted_proxies")!, "http.trusted_proxies", why)];
};

const tokenMistakes: Check = (values, sources) => {
  const token = values.get("access.token");
  if (typeof token !== "string" || token === "") return [];
  const why = /^[\x21-\x7e]*$/.test(token)
    ? weakness(token)
    : "has a space or another character that does not fit into a header";
  return why === null
    ? []
    : [describeMistake(sources.get("access.token")!, "access.token", `${why}; ${REMEDY}`)];
};
