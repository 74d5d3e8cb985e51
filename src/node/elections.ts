/** The third layer: the election of each leader role. It publishes this node's term and the current leader. */

import type { BeforeLeading } from "../leadership/elector.ts";
import { LeaderElections } from "../leadership/leader-elections.ts";
import type { Backend } from "./backend.ts";
import type { NodePlatform } from "./platform.ts";

export function elections(p: NodePlatform, b: Backend, beforeLeading?: BeforeLeading): LeaderElections {
  const { settings, identity, roles, state, events, clock, random, log } = p;
  const elections = new LeaderElections({
    coordination: b.coordination,
    identity,
    // Where each node has its own jobs, each cares for its own store.
    stands: (role) => roles.has("scheduler") || (b.peers !== null && role !== "scheduler"),
    ...(beforeLeading && {
      gate: async (term, signal) => {
        for (const agent of await beforeLeading(term, signal)) state.switchedOff.add(agent);
      },
    }),
    onChange: (change) => events.emit("term.changed", change),
    settings: settings.leader,
    clock,
    random,
    log,
  });
  const { scheduler } = elections;
  state.publish({ term: () => scheduler.held(), leader: () => scheduler.current() });
  return elections;
}
