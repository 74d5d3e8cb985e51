/**
 * The first admin token of a cluster that authenticates callers and has no administrator. Without it no token could be
 * created.
 *
 * Where nodes share a store, the store decides which node was first. Where each has its own, the token is derived from
 * the cluster secret, so that nodes that start together create the same one; and only after the node has received the
 * leader's credentials, because an older token may have been revoked.
 */

import {
  createOwnSecret,
  readOwnSecret,
  replaceOwnSecret,
  UntrustedFile,
} from "../config/secrets/secret-file.ts";
import { BatonError } from "../core/errors.ts";
import { Loop } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { serviceOf } from "../platform/service.ts";
import type { Credentials } from "./credentials.ts";
import { tokenOf, type CredentialMaker, digestOf, newToken } from "./token-service.ts";

export interface FirstTokenPeers {
  /** The same on every node; null where there is no secret to make it of, and then only the leader makes one. */
  readonly agreed: string | null;
  readonly leads: () => boolean;
  /** Whether this node has heard what the leader knows. */
  readonly settled: () => boolean;
}

interface MadeToken {
  readonly text: string;
  readonly file: string | null;
}

const LOOK_MS = 200;
const REQUEST = { name: "first-admin", permission: "admin", expiresInMs: null, by: "start" } as const;

export type FirstToken = ReturnType<typeof firstToken>;

/** `file`: where it is kept for its owner to find; null where a node has no directory of its own. */
export function firstToken(
  platform: CredentialMaker & Pick<Platform, "log">,
  credentials: Credentials,
  file: string | null,
  peers: FirstTokenPeers | null = null,
) {
  const { clock, log } = platform;
  const loop = new Loop(clock, async () => ((await tryToMake()) ? Infinity : LOOK_MS));
  /** Whether this node began with nothing; null while that is not known. */
  let anew: boolean | null = null;
  let logged = false;

  async function start(): Promise<void> {
    if (!(await tryToMake())) loop.start(LOOK_MS);
  }

  async function tryToMake(): Promise<boolean> {
    try {
      return await make();
    } catch (error) {
      if (!logged) log.error({ err: error }, "the first admin token could not be made; trying again");
      logged = true;
      return false;
    }
  }

  async function make(): Promise<boolean> {
    const cache = await credentials.fresh();
    anew ??= !cache.hasAdmin;
    if (!anew) return true;
    if (peers && !peers.settled()) return false;
    const agreed = peers?.agreed ?? null;
    if (cache.hasAdmin) {
      // Another node was faster with the same one: the owner of this machine is to find it here too.
      if (agreed !== null && cache.token(agreed, clock.now()) && file !== null) {
        replaceOwnSecret(file, agreed);
        announce({ text: agreed, file });
      }
      return true;
    }
    if (peers && agreed === null && !peers.leads()) return false;
    // Kept before it counts: a token that cannot be found would be worse than a file that is not needed.
    const text = kept(file, agreed);
    const made = tokenOf(platform, text, REQUEST);
    // One that was agreed has an id that was, too, so that all nodes make one and not several.
    const token = agreed === null ? made : { ...made, id: `first-${digestOf(text)!.slice(0, 12)}` };
    if (await credentials.put([token], "first_admin")) announce({ text, file });
    return true;
  }

  function announce(made: MadeToken): void {
    service.made = made;
    // Never the token itself: logs are kept, copied and read by many.
    const where = made.file === null ? "shown once at the terminal" : `in ${made.file}`;
    log.warn({}, `nobody had the permission admin, so a token was made that has it: it is ${where}`);
  }

  const service = Object.assign(
    serviceOf(start, () => loop.stop()),
    { made: null as MadeToken | null },
  );
  return service;
}

function kept(file: string | null, agreed: string | null): string {
  if (file === null) return agreed ?? newToken();
  if (agreed !== null) {
    replaceOwnSecret(file, agreed);
    return agreed;
  }
  try {
    // Left by a start that ended too early, if it is there.
    return readOwnSecret(file) ?? createOwnSecret(file, newToken());
  } catch (error) {
    if (!(error instanceof UntrustedFile)) throw error;
    throw new BatonError("BAD_CONFIG", `${file}, for the first admin token, ${error.message}; remove it`);
  }
}
