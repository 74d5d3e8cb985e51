/** A store whose jobs are all written under one term: what the contract promises of them is then promised of fenced writes too. */

import type { Term } from "../../../src/core/leadership/term.ts";
import type { JobStore, Store } from "../../../src/store/store.ts";
import { AUTHOR, type OpenStore, type Promises } from "../../support/store-world.ts";
import { proveOnStore, SUBJECTS } from "./contract.ts";

/** Of a role that no promise grants, and with the epoch that the promises expect to find in jobs. */
const FENCE: Term = {
  role: "metrics_aggregator",
  leader: AUTHOR.node,
  incarnation: "fence",
  epoch: AUTHOR.leaderEpoch,
};

const NAMES_ITS_EPOCH = "it writes under an epoch of its own choice; under a term, that of the term is noted";
/** Sentence of the promise to the reason why it says nothing about fenced writes. */
const UNFENCED: Readonly<Record<string, string>> = {
  "a submitted job is stored with all that was asked for": NAMES_ITS_EPOCH,
  "a claimed job carries what its worker needs": NAMES_ITS_EPOCH,
};

/** All that is about jobs and uses no term of that role. */
const FENCED_SUBJECTS = [
  "submit",
  "idempotency",
  "claim",
  "settle",
  "report",
  "cancel and retry",
  "recover",
  "overdue",
  "queues",
  "model",
];

export function fencedContract(name: string, open: OpenStore): void {
  const promises = Object.assign({}, ...FENCED_SUBJECTS.map((subject) => SUBJECTS[subject])) as Promises;
  proveOnStore(
    `the ${name} store, with every write under a term`,
    fenced(open),
    { jobs: promises },
    UNFENCED,
  );
}

function fenced(open: OpenStore): OpenStore {
  return async (options) => {
    const store = await open(options);
    await store.terms.admit(FENCE);
    return new Proxy(store, {
      get(target, key): unknown {
        if (key === "jobs") return fencedJobs(target);
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

function fencedJobs({ jobs }: Store): JobStore {
  const calls: Partial<JobStore> = {
    submit: (wanted, author, wakes, _, apart) => jobs.submit(wanted, author, wakes, FENCE, apart),
    claim: (request) => jobs.claim({ ...request, fence: FENCE }),
    record: (batch) => jobs.record(batch, FENCE),
    renew: (lease, ttlMs) => jobs.renew(lease, ttlMs, FENCE),
  };
  return new Proxy(jobs, {
    get(target, key): unknown {
      const value: unknown = Reflect.get(key in calls ? calls : target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
