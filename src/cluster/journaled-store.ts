/**
 * A store that is looked at from outside: what it refuses because of an old number is told to the journal, whoever asked for it, and
 * what comes in and out is counted. Calls and answers pass as they are. The journal begins and ends with the store, in which it is written.
 */

import { BatonError } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import { isFinal } from "../core/job.ts";
import { statusAfter } from "../jobs/result-writer.ts";
import type { Service } from "../platform/service.ts";
import type { OwnedEvents, OwnedVerdicts } from "../store/ownership.ts";
import type {
  ClaimedJob,
  Firing,
  FireVerdict,
  Guarantees,
  NewJob,
  Recovered,
  Renewal,
  Report,
  Run,
  Settlement,
  Store,
  Submitted,
  Verdict,
} from "../store/store.ts";
import type { Refusal } from "./refused-writes.ts";
import type { Traffic } from "./traffic.ts";

export interface JournaledStoreOptions {
  readonly store: Store;
  readonly journal: Pick<Service, "stop">;
  readonly refused: (refusal: Refusal) => void;
  readonly traffic: Pick<Traffic, "submitted" | "finished">;
}

type Part = Exclude<keyof Store, "guarantees" | "problem" | "close" | typeof Symbol.asyncDispose>;

/** What is written under a term, in words; what is not here is not looked at. */
const WRITES: { readonly [P in Part]?: Readonly<Record<string, string>> } = {
  jobs: {
    submit: "new jobs",
    claim: "a claim of jobs",
    settle: "results",
    report: "logs and progress",
    renew: "a lease",
    recover: "jobs taken back from the dead",
    purge: "the removal of old jobs",
  },
  schedules: { fire: "the firing of a schedule" },
  scheduleNotes: {
    write: "notes of schedules",
    read: "a look at the notes of schedules",
    place: "a job of a schedule",
    forget: "the removal of old notes",
  },
  samples: { note: "a sample", purge: "the removal of old samples" },
  agents: {
    seen: "a sign of an agent",
    remove: "the removal of an agent",
    purge: "the removal of old agents",
  },
  journal: { purge: "the removal of old entries" },
  ownership: {
    dispatch: "a dispatch",
    undispatch: "the end of a dispatch",
    write: "events of jobs",
    disown: "the end of an ownership",
    orphans: "a look for orphans",
  },
};

const RESULT = "the result of an earlier run";
const REPORT = "logs or progress of an earlier run";

type Call = (...given: unknown[]) => unknown;

export class JournaledStore implements Store {
  readonly #o: JournaledStoreOptions;
  readonly #looked = new Map<Part, { readonly inner: object; readonly outer: object }>();

  constructor(options: JournaledStoreOptions) {
    this.#o = options;
  }

  get guarantees(): Guarantees {
    return this.#o.store.guarantees;
  }

  get problem(): string | null {
    return this.#o.store.problem;
  }

  get jobs(): Store["jobs"] {
    return this.#look("jobs");
  }

  get queues(): Store["queues"] {
    return this.#o.store.queues;
  }

  get schedules(): Store["schedules"] {
    return this.#look("schedules");
  }

  get scheduleNotes(): Store["scheduleNotes"] {
    return this.#look("scheduleNotes");
  }

  get terms(): Store["terms"] {
    return this.#o.store.terms;
  }

  get samples(): Store["samples"] {
    return this.#look("samples");
  }

  get agents(): Store["agents"] {
    return this.#look("agents");
  }

  get access(): Store["access"] {
    return this.#o.store.access;
  }

  get journal(): Store["journal"] {
    return this.#look("journal");
  }

  get ownership(): Store["ownership"] {
    return this.#look("ownership");
  }

  async close(): Promise<void> {
    await this.#o.journal.stop();
    await this.#o.store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Made once: these are called for every batch of jobs. */
  #look<P extends Part>(part: P): Store[P] {
    const inner = this.#o.store[part];
    if (inner === undefined) return inner;
    const known = this.#looked.get(part);
    if (known?.inner === inner) return known.outer as Store[P];
    const outer = this.#watch(inner, part);
    this.#looked.set(part, { inner, outer });
    return outer as Store[P];
  }

  #watch(inner: object, part: Part): object {
    const calls = new Map<string | symbol, unknown>();
    return new Proxy(inner, {
      get: (target, name) => {
        if (calls.has(name)) return calls.get(name);
        const found: unknown = Reflect.get(target, name, target);
        const call = typeof found === "function" ? this.#watched(target, found as Call, part, name) : found;
        calls.set(name, call);
        return call;
      },
    });
  }

  #watched(target: object, call: Call, part: Part, name: string | symbol): Call {
    const what = typeof name === "string" ? WRITES[part]?.[name] : undefined;
    if (what === undefined) return (...given) => call.apply(target, given);
    const look = ANSWERS[`${part}.${String(name)}`];
    return (...given) => {
      const answer = call.apply(target, given) as Promise<unknown>;
      // Beside the way of the answer, which is passed on as it is.
      answer.then(
        (value) => look?.(given, value, this.#o),
        (error: unknown) => {
          const refusal = staleWrite(what, error);
          if (refusal) this.#o.refused(refusal);
        },
      );
      return answer;
    };
  }
}

type Tell = Pick<JournaledStoreOptions, "refused" | "traffic">;

/** Those whose answers say something. */
const ANSWERS: Readonly<Record<string, (given: any[], value: any, tell: Tell) => void>> = {
  "jobs.submit": ([jobs], answers, tell) => submitted(jobs, answers, tell),
  "jobs.settle": ([settlements], verdicts, tell) => settled(settlements, verdicts, tell),
  "jobs.report": ([reports], verdicts, tell) => reported(reports, verdicts, tell),
  "jobs.renew": ([lease], { held }: Renewal, { refused }) => {
    if (!held) refused({ what: `the renewal of lease ${lease}`, carried: null, current: null, job: null });
  },
  "jobs.recover": (_, recovered: readonly Recovered[], { traffic }) => {
    for (const { status } of recovered)
      if (status !== "queued") traffic.finished(undefined, status === "failed");
  },
  "schedules.fire": ([firing], verdicts: readonly FireVerdict[], { traffic }) => {
    const { occurrences } = firing as Firing;
    const fired = occurrences.filter(({ job }, at) => job !== null && verdicts[at] === "fired");
    traffic.submitted(fired.map(({ job }) => job!));
  },
  "ownership.write": ([events], verdicts, tell) => owned(events, verdicts, tell),
};

function submitted(jobs: readonly NewJob[], answers: readonly Submitted[], { traffic }: Tell): void {
  traffic.submitted(
    answers.some(({ existed }) => existed) ? jobs.filter((_, at) => !answers[at]!.existed) : jobs,
  );
}

function settled(settlements: readonly Settlement[], verdicts: readonly Verdict[], tell: Tell): void {
  for (let at = 0; at < verdicts.length; at++) {
    const { run, outcome } = settlements[at]!;
    const verdict = verdicts[at];
    if (verdict === "stale") refuse(RESULT, run, tell);
    else if (verdict === "accepted" && isFinal(statusAfter(outcome)))
      tell.traffic.finished((run as Partial<ClaimedJob>).queue, outcome.kind === "failed");
  }
}

function reported(reports: readonly Report[], verdicts: readonly Verdict[], tell: Tell): void {
  for (let at = 0; at < verdicts.length; at++)
    if (verdicts[at] === "stale") refuse(REPORT, reports[at]!.run, tell);
}

function refuse(what: string, { id, jobEpoch }: Run, { refused }: Tell): void {
  refused({ what, carried: jobEpoch, current: null, job: id });
}

function owned(all: readonly OwnedEvents[], verdicts: readonly (OwnedVerdicts | null)[], tell: Tell): void {
  all.forEach(({ assignment, ownerEpoch, reports, settlements }, at) => {
    const verdict = verdicts[at];
    if (verdict) {
      reported(reports, verdict.reported, tell);
      settled(settlements, verdict.settled, tell);
      return;
    }
    const what = `events of assignment ${assignment} by an earlier owner`;
    tell.refused({ what, carried: ownerEpoch, current: null, job: null });
  });
}

/** Null unless that is why it failed. */
export function staleWrite(what: string, error: unknown): Refusal | null {
  if (!(error instanceof BatonError) || error.code !== "STALE_EPOCH") return null;
  const {
    epoch,
    newest,
    job_id: job,
  } = error.details as {
    readonly epoch?: number;
    readonly newest?: number | null;
    readonly job_id?: JobId;
  };
  return {
    what: `${what} by an earlier leader`,
    carried: epoch ?? null,
    current: newest ?? null,
    job: job ?? null,
  };
}
