/**
 * The credentials of this node: those in its store, a copy in memory, and the way of changes between the two.
 *
 *   services --put--> store --> cache (this node) --> other nodes
 *                       ^          ^ refreshed every two seconds, and before an unknown token is refused: where the store is
 *                       |            shared, other nodes write into it
 *                       '-- times of use, at intervals
 */

import { type Credential, isForgotten, useStep } from "../core/access/credential.ts";
import { hasCode } from "../core/errors.ts";
import { Cached } from "../platform/cached.ts";
import { Loop, within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { AccessStore, PutCondition } from "../store/access.ts";
import { CredentialCache } from "./credential-cache.ts";

/** A revocation made elsewhere counts here after so long, and a query. Longer, and five seconds are not kept. */
const LOOK_MS = 2_000;
/** An unknown token causes a read at once, but not more often than this, however many are tried. */
const LOOK_AGAIN_MS = 250;
/** How old the copy may become before no change is allowed by it. Shorter, and a database that restarts locks people out. */
const STALE_MS = 30_000;
const USES_MS = 5_000;
const FORGET_MS = 3_600_000;
/** Who was here last is not worth a stop that waits for a silent store. */
const LAST_WORDS_MS = 500;

export class Credentials extends Lifecycle {
  readonly cache = new CredentialCache();
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #store: AccessStore;
  readonly #shared: boolean;
  readonly #used = new Map<string, number>();
  readonly #listeners: ((changed: readonly Credential[]) => Promise<void>)[] = [];
  #revision = 0;
  #readAt = Number.NEGATIVE_INFINITY;
  #loaded = false;
  #catchingUp: Promise<void> | null = null;
  #stopped = new AbortController();
  #usesAt = 0;
  #forgetAt = 0;
  readonly #changes: Cached<void>;
  readonly #loop: Loop;

  constructor(platform: Pick<Platform, "clock" | "log">, store: AccessStore, shared: boolean) {
    super();
    this.#platform = platform;
    this.#store = store;
    this.#shared = shared;
    this.#changes = new Cached(platform.clock, 0, () => this.#read());
    this.#loop = new Loop(platform.clock, () => this.#upkeep());
  }

  get stale(): boolean {
    if (!this.#loaded) return true;
    return this.#shared && this.#platform.clock.monotonic() - this.#readAt > STALE_MS;
  }

  /** Called with what `put` has written; `put` waits for it. */
  subscribe(listener: (changed: readonly Credential[]) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Writes, and waits until the others know. Null when the condition did not hold. */
  async put(credentials: readonly Credential[], only?: PutCondition): Promise<readonly Credential[] | null> {
    const kept = await this.merge(credentials, only);
    if (kept) await Promise.all(this.#listeners.map((listener) => listener(kept)));
    return kept;
  }

  async merge(
    credentials: readonly Credential[],
    only?: PutCondition,
  ): Promise<readonly Credential[] | null> {
    const now = this.#platform.clock.now();
    const wanted = credentials.filter((each) => !isForgotten(each, now));
    const kept = await this.#store.put(wanted, only);
    if (kept) this.cache.take(kept);
    return kept;
  }

  /** The newest there is, for changes that are made of what is there. */
  async fresh(): Promise<CredentialCache> {
    // A read that is under way may have begun before what is asked for was written.
    if (this.#shared || !this.#loaded) await this.#changes.next();
    return this.cache;
  }

  /** Reads again, after a moment if that was done just now, once for all that wait; never rejects. */
  catchUp(): Promise<void> {
    if (!this.#shared) return Promise.resolve();
    this.#catchingUp ??= this.#lookSoon().finally(() => (this.#catchingUp = null));
    return this.#catchingUp;
  }

  async #lookSoon(): Promise<void> {
    const { clock, log } = this.#platform;
    await clock.sleep(this.#readAt + LOOK_AGAIN_MS - clock.monotonic(), this.#stopped.signal);
    await this.#changes
      .read()
      .catch((error: unknown) => log.debug({ err: error }, "credentials were not read"));
  }

  /** Costs a write only once in ten minutes. */
  used({ id, lastUsedAt }: Credential, now: number): void {
    const step = useStep(now);
    if (lastUsedAt === null || lastUsedAt < step) this.#used.set(id, step);
  }

  protected override async onStart(): Promise<void> {
    const { clock } = this.#platform;
    this.#stopped = new AbortController();
    this.#usesAt = clock.monotonic() + USES_MS;
    this.#forgetAt = clock.monotonic();
    await this.#tryTo("read the credentials", () => this.#changes.read());
    this.#loop.start(LOOK_MS);
  }

  protected override async onStop(): Promise<void> {
    this.#stopped.abort();
    await within(this.#platform.clock, LAST_WORDS_MS, this.#end());
  }

  async #end(): Promise<void> {
    await this.#loop.stop();
    await this.#tryTo("note who was here", () => this.#writeUses());
  }

  async #upkeep(): Promise<number> {
    if (this.#shared || !this.#loaded) await this.#tryTo("read the credentials", () => this.#changes.read());
    const now = this.#platform.clock.monotonic();
    if (now >= this.#usesAt) {
      this.#usesAt = now + USES_MS;
      await this.#tryTo("note who was here", () => this.#writeUses());
    }
    if (now >= this.#forgetAt) {
      this.#forgetAt = now + FORGET_MS;
      await this.#tryTo("forget old credentials", () => this.#forget());
    }
    return LOOK_MS;
  }

  async #read(): Promise<void> {
    const sentAt = this.#platform.clock.monotonic();
    const { revision, credentials } = await this.#store.changes(this.#revision);
    this.cache.take(credentials);
    this.#revision = revision;
    this.#readAt = sentAt;
    this.#loaded = true;
  }

  async #writeUses(): Promise<void> {
    const uses = [...this.#used].flatMap(([id, lastUsedAt]) => {
      const known = this.cache.get(id);
      return known && known.removedAt === null ? [{ ...known, lastUsedAt }] : [];
    });
    this.#used.clear();
    if (uses.length > 0) await this.merge(uses);
  }

  async #forget(): Promise<void> {
    const ids = this.cache.forgotten(this.#platform.clock.now());
    if (ids.length === 0) return;
    await this.#store.forget(ids);
    this.cache.drop(ids);
  }

  async #tryTo(what: string, step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      const level = hasCode(error, "STORE_UNAVAILABLE") ? "debug" : "warn";
      this.#platform.log[level]({ err: error }, `could not ${what}; trying again`);
    }
  }
}
