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
import type { Credential } from "../core/access/credential.ts";
import { Loop } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Credentials } from "./credentials.ts";
import { tokenOf, type CredentialMaker, digestOf, newToken } from "./token-service.ts";

export interface FirstTokenPeers {
  /** The same on every node; null where there is no secret to make it of, and then only the leader makes one. */
  readonly agreed: string | null;
  readonly leads: () => boolean;
  /** Whether this node has heard what the leader knows. */
  readonly settled: () => boolean;
}

export interface MadeToken {
  readonly text: string;
  readonly file: string | null;
}

const LOOK_MS = 200;
const REQUEST = { name: "first-admin", permission: "admin", expiresInMs: null, by: "start" } as const;

export class FirstToken extends Lifecycle {
  readonly #platform: CredentialMaker & Pick<Platform, "log">;
  readonly #credentials: Credentials;
  readonly #file: string | null;
  readonly #peers: FirstTokenPeers | null;
  readonly #loop: Loop;
  /** Whether this node began with nothing; null while that is not known. */
  #anew: boolean | null = null;
  made: MadeToken | null = null;
  #logged = false;

  /** `file`: where it is kept for its owner to find; null where a node has no directory of its own. */
  constructor(
    platform: CredentialMaker & Pick<Platform, "log">,
    credentials: Credentials,
    file: string | null,
    peers: FirstTokenPeers | null = null,
  ) {
    super();
    this.#platform = platform;
    this.#credentials = credentials;
    this.#file = file;
    this.#peers = peers;
    this.#loop = new Loop(platform.clock, async () => ((await this.#try()) ? Infinity : LOOK_MS));
  }

  protected override async onStart(): Promise<void> {
    if (!(await this.#try())) this.#loop.start(LOOK_MS);
  }

  protected override onStop(): Promise<void> {
    return this.#loop.stop();
  }

  async #try(): Promise<boolean> {
    try {
      return await this.#make();
    } catch (error) {
      if (!this.#logged)
        this.#platform.log.error({ err: error }, "the first admin token could not be made; trying again");
      this.#logged = true;
      return false;
    }
  }

  async #make(): Promise<boolean> {
    const [file, peers] = [this.#file, this.#peers];
    const cache = await this.#credentials.fresh();
    this.#anew ??= !cache.hasAdmin;
    if (!this.#anew) return true;
    if (peers && !peers.settled()) return false;
    const agreed = peers?.agreed ?? null;
    if (cache.hasAdmin) {
      // Another node was faster with the same one: the owner of this machine is to find it here too.
      if (agreed !== null && cache.token(agreed, this.#platform.clock.now()) && file !== null) {
        replaceOwnSecret(file, agreed);
        this.#announce({ text: agreed, file });
      }
      return true;
    }
    if (peers && agreed === null && !peers.leads()) return false;
    // Kept before it counts: a token that cannot be found would be worse than a file that is not needed.
    const text = this.#keep(agreed);
    if (await this.#credentials.put([this.#credential(text, agreed !== null)], "first_admin"))
      this.#announce({ text, file });
    return true;
  }

  #keep(agreed: string | null): string {
    const file = this.#file;
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

  /** One that was agreed has an id that was, too, so that all nodes make one and not several. */
  #credential(text: string, isAgreed: boolean): Credential {
    const made = tokenOf(this.#platform, text, REQUEST);
    return isAgreed ? { ...made, id: `first-${digestOf(text)!.slice(0, 12)}` } : made;
  }

  #announce(made: MadeToken): void {
    this.made = made;
    // Never the token itself: logs are kept, copied and read by many.
    const where = made.file === null ? "shown once at the terminal" : `in ${made.file}`;
    this.#platform.log.warn(
      {},
      `nobody had the permission admin, so a token was made that has it: it is ${where}`,
    );
  }
}
