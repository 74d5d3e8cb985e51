/** What the settings of access must not be. */

import { weakness } from "./secret.ts";
import type { Source } from "./source.ts";
import { told } from "./source.ts";
import type { Value } from "./value.ts";

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
