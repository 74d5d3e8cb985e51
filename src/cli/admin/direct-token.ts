/**
 * Writes credentials directly into a store, when no node can be called: the first ones, or after all others were lost.
 */

import { tokenBody } from "../../api/bodies/access-body.ts";
import type { Settings } from "../../config/settings.ts";
import { storeOptions } from "../../config/fabric.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { openStore } from "../../store/open-store.ts";
import type { TokenRequest } from "../../access/token-service.ts";
import { tokenOf } from "../../access/token-service.ts";
import { newToken } from "../../access/token-format.ts";

export interface DirectRequest extends Omit<TokenRequest, "by"> {
  readonly clock: Clock;
  readonly random: Random;
}

/** Rejects with DATA_IN_USE while a node has an embedded store open. */
export async function createTokenIn(settings: Settings, { clock, random, ...request }: DirectRequest) {
  const text = newToken();
  const token = tokenOf(text, { ...request, by: "command line" }, { node: settings.name, clock, random });
  await using store = await openStore(storeOptions(settings, { connections: 2, clock }));
  await store.access.put([token]);
  return { ...tokenBody(token, clock.now()), token: text };
}
