/** Metrics of leadership: the leader, the ends of terms, and writes that were refused because of a newer epoch. */

import type { Leadership } from "../../leadership/coordination.ts";
import { staleWriter, type Refusal, type StaleWriter } from "../../core/leadership/refused-write.ts";
import { LEADER_ROLES, TERM_ENDS, type LeaderRole, type TermChange } from "../../core/leadership/term.ts";
import { byLabel, type Instruments, type Reading, zeros } from "./instruments.ts";

export class LeaderMetrics {
  readonly #started = zeros(LEADER_ROLES);
  readonly #ended = new Map<string, { readonly labels: { role: string; reason: string }; count: number }>();
  readonly #refused: Record<StaleWriter, number> = { run: 0, lease: 0, owner: 0, leader: 0 };

  constructor() {
    for (const role of LEADER_ROLES)
      for (const reason of Object.keys(TERM_ENDS))
        this.#ended.set(`${role} ${reason}`, { labels: { role, reason }, count: 0 });
  }

  /** Registers all of them, once the elections have been built. */
  describe(instruments: Instruments, leadership: (role: LeaderRole) => Leadership): void {
    const byRole = (value: (role: LeaderRole) => number) => (): Reading[] =>
      LEADER_ROLES.map((role) => [{ role }, value(role)]);
    instruments.register({
      baton_leader: byRole((role) => (leadership(role).held() ? 1 : 0)),
      baton_leader_epoch: byRole((role) => leadership(role).current()?.epoch ?? 0),
      baton_leader_terms_total: byRole((role) => this.#started[role]),
      baton_leader_terms_ended_total: () =>
        [...this.#ended.values()].map(({ labels, count }): Reading => [labels, count]),
      baton_stale_writes_total: () => byLabel("what", this.#refused),
    });
  }

  changed(change: TermChange): void {
    const { role } = change.term;
    if (change.is === "started") this.#started[role]++;
    else this.#ended.get(`${role} ${change.reason}`)!.count++;
  }

  refused({ write }: Pick<Refusal, "write">): void {
    this.#refused[staleWriter(write)]++;
  }
}
