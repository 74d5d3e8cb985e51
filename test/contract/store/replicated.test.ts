/** The promises about schedules, kept by the leader of a cluster whose nodes have a store each. */

import type { Term } from "../../../src/core/leadership/term.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { MemoryNetwork } from "../../support/memory-network.ts";
import { nodeNames, ReplicaNode } from "../../support/replica-node.ts";
import type { OpenStore } from "../../support/store-world.ts";
import { proveOnStore } from "./contract.ts";
import { firingPromises } from "./firing.ts";
import { schedulePromises } from "./schedules.ts";

/** The store of the node that leads, with the cluster's schedules in the place of its own. */
function openCluster(count: number): OpenStore {
  return async ({ clock, dir }) => {
    const network = new MemoryNetwork(clock);
    const members = nodeNames(count);
    const disks = await Promise.all(members.map((name) => openSqliteStore({ dir: `${dir}/${name}`, clock })));
    const nodes = members.map(
      (name, index) => new ReplicaNode({ name, members, disk: disks[index]!, network, clock }),
    );
    await Promise.all(nodes.map((node) => node.start()));
    const [disk, leader] = [disks[0]!, nodes[0]!];
    const lead = (term: Term): Term => (leader.term = term);
    lead(await disk.terms.grant("scheduler", { name: leader.name, incarnation: "0" }));
    return {
      guarantees: disk.guarantees,
      problem: null,
      jobs: disk.jobs,
      queues: disk.queues,
      samples: disk.samples,
      agents: disk.agents,
      journal: disk.journal,
      access: disk.access,
      purge: disk.purge,
      schedules: leader.schedules,
      terms: {
        grant: async (role, candidate) => lead(await disk.terms.grant(role, candidate)),
        admit: (term) => disk.terms.admit(term),
        read: (role) => disk.terms.read(role),
      },
      close: async () => {
        await Promise.all(nodes.map((node) => node.stop()));
        await Promise.all(disks.map((one) => one.close()));
      },
      [Symbol.asyncDispose]: async () => {},
    };
  };
}

for (const count of [1, 3])
  proveOnStore(`the schedules of ${count} ${count === 1 ? "store" : "stores"}`, openCluster(count), {
    schedules: schedulePromises,
    firing: firingPromises,
  });
