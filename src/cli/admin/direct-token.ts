/**
 * Writes credentials directly into a store, when no node can be called: the first ones, or after all others were lost.
 */

import { tokenBody } from "../../api/operations/access/access.ts";
import type { Settings } from "../../config/settings.ts";
import { storeOptions } from "../../config/fabric.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { openStore } from "../../store/open-store.ts";
import { newToken, tokenOf, type TokenRequest } from "../../access/token-service.ts";

export interface DirectRequest extends Omit<TokenRequest, "by"> {
  readonly clock: Clock;
  readonly random: Random;
}

/** Rejects with DATA_IN_USE while a node has an embedded store open. */
export async function createTokenIn(settings: Settings, { clock, random, ...request }: DirectRequest) {
  const text = newToken();
  const token = tokenOf({ clock, random, identity: settings }, text, { ...request, by: "command line" });
  await using store = await openStore(storeOptions(settings, { connections: 2, clock }));
  await store.access.put([token]);
  return { ...tokenBody(token, clock.now()), token: text };
}
