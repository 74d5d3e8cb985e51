/** What a node tells the journal, and how it hears of it: the store, the coordination and the elections are looked at on the way. */

import { JournaledCoordination } from "./cluster/journaled-coordination.ts";
import { JournaledStore } from "./cluster/journaled-store.ts";
import { Journal } from "./cluster/journal.ts";
import { RefusedWrites, type Refusal } from "./cluster/refused-writes.ts";
import { TermNotes } from "./cluster/term-notes.ts";
import { Traffic } from "./cluster/traffic.ts";
import type { Coordination } from "./coordination/coordination.ts";
import type { TermChange } from "./coordination/elector.ts";
import type { NodeIdentity } from "./core/node.ts";
import type { TakenOver } from "./ownership/handoff-subscriber.ts";
import type { Clock } from "./platform/clock.ts";
import type { Log } from "./platform/log.ts";
import { assignmentSubject } from "./store/journal.ts";
import type { Store } from "./store/store.ts";
import { VERSION } from "./version.ts";

export interface JournalPartsOptions {
  readonly store: Store;
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  /** Whoever counts refused writes. */
  readonly onRefused?: (refusal: Refusal) => void;
}

export function openJournal({ store: inner, identity, clock, log, onRefused }: JournalPartsOptions) {
  const journal = new Journal({ store: inner, node: identity.name, clock, log });
  const refusals = new RefusedWrites({
    journal,
    clock,
    epochOf: async (job) => (await inner.jobs.get(job))?.jobEpoch ?? null,
  });
  const refused = (refusal: Refusal): void => {
    onRefused?.(refusal);
    refusals.tell(refusal);
  };
  const writing = {
    stop: () => {
      refusals.close();
      return journal.stop();
    },
  };
  const traffic = new Traffic(clock);
  const store: Store = new JournaledStore({ store: inner, journal: writing, refused, traffic });
  return {
    journal,
    store,
    traffic,
    coordination: (coordination: Coordination): Coordination =>
      new JournaledCoordination({ coordination, identity, version: VERSION, journal, refused }),
    onTerm: (nodes: Coordination["membership"]["nodes"]): ((change: TermChange) => void) => {
      const notes = new TermNotes({ journal, nodes, clock, log });
      return (change) => notes.changed(change);
    },
    onTakenOver: ({ assignment, from, ownerEpoch, jobs, reason }: TakenOver): void =>
      journal.note({
        kind: "handoff",
        subject: assignmentSubject(assignment),
        detail: { assignment, from, to: identity.name, jobs, owner_epoch: ownerEpoch, reason },
      }),
    /** What was running when a drain ended was put back. */
    onDrained: (interrupted: number): void =>
      journal.note({ kind: "node.drained", subject: identity.name, detail: { interrupted } }),
    refused,
  };
}
