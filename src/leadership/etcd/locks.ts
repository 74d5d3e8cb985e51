/** Elections through etcd: a key under a lease for each leader role. The members are in PostgreSQL. */

import type { LeaderRole } from "../../core/leadership/term.ts";
import { silentLog } from "../../platform/log.ts";
import { startWith } from "../../platform/service.ts";
import { commandMsOf, ServerLocks, type AdmittedLocksOptions } from "../server-locks.ts";
import { ControlSession } from "./control-session.ts";
import { LeaderRecord, leaderKey } from "./leader-record.ts";
import { EtcdLock } from "./lock.ts";

export class EtcdLocks extends ServerLocks<EtcdLock> {
  readonly kind = "etcd";
  readonly #o: AdmittedLocksOptions;
  readonly #control: ControlSession;

  /** The url is `http://user:password@host:2379`, or `https://` for TLS; several members with commas between them. */
  constructor(options: AdmittedLocksOptions) {
    super();
    this.#o = options;
    const { prefix = "baton", time = options.clock, settings } = options;
    this.#control = new ControlSession({
      ...options,
      prefix,
      time,
      commandMs: commandMsOf(settings),
      // Again after a loss: a change may have been missed, so a leader renews at once.
      onReady: () => this.hintAll(),
      onLeader: ({ key, revision, deleted }) =>
        this.lockOf(key, (role) => leaderKey(this.#control, role))?.changed(revision, deleted),
    });
  }

  protected openLock(role: LeaderRole): EtcdLock {
    const { clock, terms, log = silentLog } = this.#o;
    return new EtcdLock({ clock, log, role, terms, owner: this }, this.#control);
  }

  notes(): readonly string[] {
    return [...this.#control.failures].map(
      ([endpoint, why]) =>
        `etcd at ${endpoint} did not answer the last request of this node (${why}); another member is used.`,
    );
  }

  protected async onStart(): Promise<void> {
    // A user without access to our keys is refused now and not at the first election.
    await startWith(this.#control, () => new LeaderRecord(this.#control, "scheduler").read());
  }

  protected async onStop(): Promise<void> {
    await this.stopLocks();
    await this.#control.stop();
  }
}
