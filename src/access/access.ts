/** Authenticates callers by a token or a session, from memory; on a node that is open, every caller may do everything. */

import { LOOPBACK, principalText, type Principal } from "../core/access/permissions.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle, type Service } from "../platform/service.ts";
import type { Known } from "./credential-cache.ts";
import type { Credentials } from "./credentials.ts";
import type { FirstToken } from "./first-token.ts";
import { passwordHashes } from "./passwords.ts";
import {
  digestOf,
  sameDigest,
  tokenService,
  type CredentialMaker,
  type TokenService,
} from "./token-service.ts";
import { userService, type UserService } from "./user-service.ts";

export interface AccessOptions {
  readonly credentials: Credentials;
  readonly open: boolean;
  /** The setting `access.token`; empty for none. */
  readonly fixedToken: string;
  readonly firstToken: FirstToken | null;
  readonly replicas?: Service | null;
}

/** Where what a caller shows was found. */
export interface PresentedCredential {
  readonly by: "bearer" | "cookie";
  readonly text: string;
}

const FIXED = {
  principal: { kind: "setting", name: "access.token", permission: "admin", id: null },
  credential: null,
} as const;

export class Access extends Lifecycle {
  readonly open: boolean;
  readonly tokens: TokenService;
  readonly users: UserService;
  readonly #platform: CredentialMaker & Pick<Platform, "log" | "machine">;
  readonly #o: AccessOptions;
  readonly #fixed: string | null;

  constructor(platform: CredentialMaker & Pick<Platform, "log" | "machine">, options: AccessOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
    this.open = options.open;
    this.#fixed = options.fixedToken === "" ? null : digestOf(options.fixedToken);
    const { credentials } = options;
    this.tokens = tokenService(platform, credentials);
    this.users = userService(platform, credentials, passwordHashes(platform));
  }

  /** Whether what is known here may be out of date: then no change is allowed by it. */
  get stale(): boolean {
    return this.#o.credentials.stale;
  }

  /** The token that this start has made because there was none; null if there was one. */
  get first(): FirstToken["made"] {
    return this.#o.firstToken?.made ?? null;
  }

  identify(shown: PresentedCredential): Principal | null {
    const now = this.#platform.clock.now();
    const known = this.#find(shown, now);
    if (known?.credential) this.#o.credentials.used(known.credential, now);
    return known && known.principal;
  }

  /** Whether a reader that was admitted by it may stay. This does not count as use of a session. */
  knows(shown: PresentedCredential): boolean {
    return this.#find(shown, this.#platform.clock.now()) !== null;
  }

  /** For what is not known: it may have been made elsewhere a moment ago. */
  async identifyAgain(shown: PresentedCredential): Promise<Principal | null> {
    await this.#o.credentials.catchUp();
    return this.identify(shown);
  }

  #find({ by, text }: PresentedCredential, now: number): Known | typeof FIXED | null {
    const { cache } = this.#o.credentials;
    return by === "cookie" ? cache.session(text, now) : (cache.token(text, now) ?? this.#fixedBy(text));
  }

  #fixedBy(text: string): typeof FIXED | null {
    const digest = this.#fixed === null ? null : digestOf(text);
    return digest !== null && sameDigest(digest, this.#fixed!) ? FIXED : null;
  }

  protected override async onStart(): Promise<void> {
    const { credentials, replicas, firstToken } = this.#o;
    await credentials.start();
    await replicas?.start();
    await firstToken?.start();
    if (!this.open) return;
    this.#platform.log.debug({}, `no credentials are asked for: callers are ${principalText(LOOPBACK)}`);
  }

  protected override async onStop(): Promise<void> {
    const { credentials, replicas, firstToken } = this.#o;
    await firstToken?.stop();
    await replicas?.stop();
    await credentials.stop();
  }
}
