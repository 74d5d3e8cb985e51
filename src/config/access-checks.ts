/** What the settings of access mean together, and what they must not be. */

import { isEverywhere, isLoopback } from "./address.ts";
import { weakness } from "./secret.ts";
import type { Settings } from "./settings.ts";
import type { Source } from "./source.ts";
import { told } from "./source.ts";
import type { Value } from "./value.ts";

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
  const token = values.get("access.token");
  if (typeof token !== "string" || token === "") return [];
  const why = /^[\x21-\x7e]*$/.test(token)
    ? weakness(token)
    : "has a space or another character that does not fit into a header";
  return why === null ? [] : [told(sources.get("access.token")!, "access.token", `${why}; ${REMEDY}`)];
}
