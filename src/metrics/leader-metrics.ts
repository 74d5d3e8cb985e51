/** Who leads, how terms end, and what was refused because it came too late. */

import type { Refusal } from "../cluster/refused-writes.ts";
import type { Leadership } from "../coordination/coordination.ts";
import type { TermChange } from "../coordination/elector.ts";
import { LEADER_ROLES, TERM_ENDS, type LeaderRole } from "../core/term.ts";
import type { Instruments, Reading } from "./instruments.ts";

const WRITES = ["run", "lease", "owner", "leader"] as const;

export class LeaderMetrics {
  readonly #started = Object.fromEntries(LEADER_ROLES.map((role) => [role, 0])) as Record<LeaderRole, number>;
  readonly #ended = new Map<string, { readonly labels: { role: string; reason: string }; count: number }>();
  readonly #refused: Record<(typeof WRITES)[number], number> = { run: 0, lease: 0, owner: 0, leader: 0 };

  constructor(instruments: Instruments, leadership: (role: LeaderRole) => Leadership) {
    for (const role of LEADER_ROLES)
      for (const reason of Object.keys(TERM_ENDS))
        this.#ended.set(`${role} ${reason}`, { labels: { role, reason }, count: 0 });
    const byRole = (value: (role: LeaderRole) => number) => (): Reading[] =>
      LEADER_ROLES.map((role) => [{ role }, value(role)]);
    instruments.gauge(
      { name: "baton_leader", help: "1 while this node leads in that role.", labels: ["role"] },
      byRole((role) => (leadership(role).held() ? 1 : 0)),
    );
    instruments.gauge(
      {
        name: "baton_leader_epoch",
        help: "The epoch of whoever leads, as this node last saw it; 0 while nobody is known.",
        labels: ["role"],
      },
      byRole((role) => leadership(role).current()?.epoch ?? 0),
    );
    instruments.counter(
      { name: "baton_leader_terms_total", help: "Terms that this node has begun.", labels: ["role"] },
      byRole((role) => this.#started[role]),
    );
    instruments.counter(
      {
        name: "baton_leader_terms_ended_total",
        help: "Terms of this node that have ended. lapsed: not renewed in time; superseded: taken over; slept: the machine slept; resigned and stopped: on purpose.",
        labels: ["role", "reason"],
      },
      () => [...this.#ended.values()].map(({ labels, count }): Reading => [labels, count]),
    );
    instruments.counter(
      {
        name: "baton_stale_writes_total",
        help: "Writes that the store refused because somebody else has a newer number. run: results and logs; lease: renewals; owner: events; leader: what an earlier leader would write.",
        labels: ["what"],
      },
      () => WRITES.map((what): Reading => [{ what }, this.#refused[what]]),
    );
  }

  changed(change: TermChange): void {
    const { role } = change.term;
    if (change.is === "started") this.#started[role]++;
    else this.#ended.get(`${role} ${change.reason}`)!.count++;
  }

  refused({ what, job }: Pick<Refusal, "what" | "job">): void {
    this.#refused[kindOf(what, job !== null)]++;
  }
}

/** By how it is told in the journal. */
function kindOf(what: string, aboutRun: boolean): (typeof WRITES)[number] {
  if (aboutRun) return "run";
  if (what.startsWith("the renewal of")) return "lease";
  return what.startsWith("events of") ? "owner" : "leader";
}
