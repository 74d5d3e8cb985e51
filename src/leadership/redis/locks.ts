/** Elections through Redis: a key with a lease for each leader role. The members are in PostgreSQL. */

import type { LeaderRole } from "../../core/leadership/term.ts";
import { silentLog } from "../../platform/log.ts";
import { startWith } from "../../platform/service.ts";
import { commandMsOf, ServerLocks, type AdmittedLocksOptions } from "../server-locks.ts";
import { ControlSession } from "./control-session.ts";
import { LeaderRecord } from "./leader-record.ts";
import { IncarnationWatch } from "./incarnation-watch.ts";
import { RedisLock } from "./lock.ts";

const NOT_COUNTED =
  "Redis does not report subscriptions (PUBSUB NUMSUB): a dead leader is replaced when its lease ends. Give the nodes a direct URL of the server, and their user the right to PUBSUB: then it is replaced at once.";
const EVICTING = (policy: string): string =>
  `Redis deletes keys when its memory is full (maxmemory-policy ${policy}): a leader whose key is deleted loses its term, and messages may be lost. Set maxmemory-policy to noeviction.`;

export class RedisLocks extends ServerLocks<RedisLock> {
  readonly kind = "redis";
  readonly #o: AdmittedLocksOptions;
  readonly #control: ControlSession;
  readonly #watch: IncarnationWatch;

  /** The url is `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
  constructor(options: AdmittedLocksOptions) {
    super();
    this.#o = options;
    const { time = null, settings } = options;
    this.#control = new ControlSession({
      ...options,
      time,
      commandMs: commandMsOf(settings),
      // Again after a loss: others may have seen us go, so a leader renews at once.
      onReady: () => this.hintAll(),
      onLost: () => this.#watch.lost(),
      onNotification: (subject) => this.lockOf(subject)?.hint(),
    });
    this.#watch = new IncarnationWatch(options.clock, this.#control);
  }

  protected openLock(role: LeaderRole): RedisLock {
    const { clock, terms, log = silentLog } = this.#o;
    return new RedisLock({ clock, log, role, terms, owner: this }, this.#control, this.#watch);
  }

  notes(): readonly string[] {
    const { open, ownChannel, evicts } = this.#control;
    return [
      ...(open && ownChannel === "" ? [NOT_COUNTED] : []),
      ...(evicts === null ? [] : [EVICTING(evicts)]),
    ];
  }

  protected async onStart(): Promise<void> {
    // A user without access to our keys is refused now and not at the first election.
    await startWith(this.#control, () => new LeaderRecord(this.#control, "scheduler").tenure());
  }

  protected async onStop(): Promise<void> {
    await this.stopLocks();
    await this.#control.stop();
    this.#watch.stop();
  }
}
