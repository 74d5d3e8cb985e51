/**
 * A store that is looked at from outside: what it refuses because of an old number is told to the journal, whoever asked for it. Calls and
 * answers pass as they are. The journal begins and ends with the store, in which it is written.
 */

import { BatonError } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import type { Service } from "../platform/service.ts";
import type { OwnedEvents, OwnedVerdicts } from "../store/ownership.ts";
import type { Guarantees, Renewal, Run, Store, Verdict } from "../store/store.ts";
import type { Refusal } from "./refused-writes.ts";

export interface JournaledStoreOptions {
  readonly store: Store;
  readonly journal: Pick<Service, "start" | "stop">;
  readonly refused: (refusal: Refusal) => void;
}

type Part = Exclude<keyof Store, keyof Service | "guarantees" | "problem">;

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

  async start(): Promise<void> {
    await this.#o.store.start();
    await this.#o.journal.start();
  }

  async stop(): Promise<void> {
    await this.#o.journal.stop();
    await this.#o.store.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Made once for each start of a keeper: these are called for every batch of jobs. */
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
    const { refused } = this.#o;
    const look = ANSWERS[`${part}.${String(name)}`];
    return (...given) => {
      const answer = call.apply(target, given) as Promise<unknown>;
      // Beside the way of the answer, which is passed on as it is.
      answer.then(
        (value) => look?.(given, value, refused),
        (error: unknown) => {
          const refusal = staleWrite(what, error);
          if (refusal) refused(refusal);
        },
      );
      return answer;
    };
  }
}

type Tell = JournaledStoreOptions["refused"];

/** Those that say it in their answer. */
const ANSWERS: Readonly<Record<string, (given: any[], value: any, tell: Tell) => void>> = {
  "jobs.settle": ([settlements], verdicts, tell) => judged(settlements, verdicts, RESULT, tell),
  "jobs.report": ([reports], verdicts, tell) => judged(reports, verdicts, REPORT, tell),
  "jobs.renew": ([lease], { held }: Renewal, tell) => {
    if (!held) tell({ what: `the renewal of lease ${lease}`, carried: null, current: null, job: null });
  },
  "ownership.write": ([events], verdicts, tell) => owned(events, verdicts, tell),
};

function judged(
  writes: readonly { readonly run: Run }[],
  verdicts: readonly Verdict[],
  what: string,
  tell: Tell,
): void {
  for (let at = 0; at < verdicts.length; at++) {
    if (verdicts[at] !== "stale") continue;
    const { id, jobEpoch } = writes[at]!.run;
    tell({ what, carried: jobEpoch, current: null, job: id });
  }
}

function owned(all: readonly OwnedEvents[], verdicts: readonly (OwnedVerdicts | null)[], tell: Tell): void {
  all.forEach(({ assignment, ownerEpoch, reports, settlements }, at) => {
    const verdict = verdicts[at];
    if (verdict) {
      judged(reports, verdict.reported, REPORT, tell);
      judged(settlements, verdict.settled, RESULT, tell);
      return;
    }
    const what = `events of assignment ${assignment} by an earlier owner`;
    tell({ what, carried: ownerEpoch, current: null, job: null });
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
