/** Metrics of leadership: the leader, the ends of terms, and writes that were refused because of a newer epoch. */

import type { Leadership } from "../../leadership/coordination.ts";
import { staleWriter, type Refusal, type StaleWriter } from "../../core/leadership/refused-write.ts";
import { LEADER_ROLES, TERM_ENDS, type LeaderRole, type TermChange } from "../../core/leadership/term.ts";
import { byLabel, type Instruments, type Reading, zeros } from "./instruments.ts";

const REASONS = Object.keys(TERM_ENDS) as (keyof typeof TERM_ENDS)[];

export class LeaderMetrics {
  readonly #started = zeros(LEADER_ROLES);
  readonly #ended = LEADER_ROLES.map((role) => ({ role, counts: zeros(REASONS) }));
  readonly #refused: Record<StaleWriter, number> = { run: 0, lease: 0, owner: 0, leader: 0 };

  describe(instruments: Instruments, leadership: (role: LeaderRole) => Leadership): void {
    const byRole = (value: (role: LeaderRole) => number) => (): Reading[] =>
      LEADER_ROLES.map((role) => [{ role }, value(role)]);
    instruments.register({
      baton_leader: byRole((role) => (leadership(role).held() ? 1 : 0)),
      baton_leader_epoch: byRole((role) => leadership(role).current()?.epoch ?? 0),
      baton_leader_terms_total: byRole((role) => this.#started[role]),
      baton_leader_terms_ended_total: () =>
        this.#ended.flatMap(({ role, counts }) =>
          REASONS.map((reason): Reading => [{ role, reason }, counts[reason]]),
        ),
      baton_stale_writes_total: () => byLabel("what", this.#refused),
    });
  }

  changed(change: TermChange): void {
    const { role } = change.term;
    if (change.is === "started") this.#started[role]++;
    else this.#ended.find((each) => each.role === role)!.counts[change.reason]++;
  }

  refused({ write }: Pick<Refusal, "write">): void {
    this.#refused[staleWriter(write)]++;
  }
}
