/**
 * Answers the requests of other nodes about schedules. It needs no leadership: a leader sends its requests to itself
 * through the same handler, without the network.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { ScheduleNote } from "../../core/schedules/schedule-register.ts";
import type { Term } from "../../core/leadership/term.ts";
import type { Log } from "../../platform/log.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type { NotePage, ScheduleNotes } from "../../store/schedule-notes.ts";
import type { JobStore, ScheduleStore } from "../../store/store.ts";
import type { PeerReply, ReceivedRequest } from "../../transport/transport.ts";
import type { ScheduleRequestOf, ScheduleRequestName, ScheduleAnswerOf } from "./schedule-messages.ts";
import { chunks, SCHEDULE_PATH, SCHEDULE_PROTOCOL } from "./schedule-messages.ts";

export interface ScheduleRequestHandlerOptions {
  readonly self: NodeName;
  /** This node's own; looked into only when it is needed, because it may be started later. */
  readonly store: ReplicaStore;
  /** False while this node drains: it takes no new jobs, and says so before it has any part in them. */
  readonly accepts: () => boolean;
  /** Jobs were stored here, so the worker should claim. */
  readonly onPlaced: (queues: ReadonlySet<string>) => void;
  readonly events: NodeEvents;
  readonly log?: Pick<Log, "warn">;
}

export interface ReplicaStore {
  readonly schedules: Pick<ScheduleStore, "get" | "list" | "history">;
  readonly scheduleNotes?: ScheduleNotes;
  readonly jobs: Pick<JobStore, "get">;
}

export function notesOf({ scheduleNotes }: ReplicaStore): ScheduleNotes {
  if (scheduleNotes) return scheduleNotes;
  throw new BatonError(
    "BAD_CONFIG",
    "a store that nodes share keeps schedules by itself and takes no notes",
    {
      field: "store",
    },
  );
}

type Answers = {
  readonly [Q in ScheduleRequestName]: (ask: ScheduleRequestOf<Q>) => Promise<ScheduleAnswerOf<Q>>;
};

const PAGE_NOTES = 200;
const PAGE_DIGESTS = 1_000;

export class ScheduleRequestHandler {
  readonly #options: ScheduleRequestHandlerOptions;
  readonly #answers: Answers;

  constructor(options: ScheduleRequestHandlerOptions) {
    this.#options = options;
    const { store, events } = options;
    this.#answers = {
      note: ({ term, ...batch }) => events.fenced("scheduleNotes.write", this.#notes.write(batch, term)),
      read: (ask) => this.#read(ask),
      digest: (ask) => this.#digest(ask),
      place: (ask) => this.#place(ask),
      forget: async ({ term, names }) => {
        await events.fenced("scheduleNotes.forget", this.#notes.forget(names, term));
        return {};
      },
      noted: async ({ schedule, instants }) => ({ occurrences: await this.#notes.noted(schedule, instants) }),
      history: async ({ schedule, limit }) => ({
        occurrences: await store.schedules.history(schedule, limit),
      }),
      job: async ({ job }) => ({ status: (await store.jobs.get(job))?.status ?? null }),
    };
  }

  get #notes(): ScheduleNotes {
    return notesOf(this.#options.store);
  }

  /** STALE_EPOCH when a newer term is known here. */
  async answer<Q extends ScheduleRequestName>(
    question: Q,
    ask: ScheduleRequestOf<Q>,
  ): Promise<ScheduleAnswerOf<Q>> {
    return this.#answers[question](ask);
  }

  async handle(request: ReceivedRequest): Promise<PeerReply> {
    const path = request.path.split("?", 1)[0]!;
    const question = path.startsWith(`${SCHEDULE_PATH}/`) ? path.slice(SCHEDULE_PATH.length + 1) : "";
    if (!Object.hasOwn(SCHEDULE_PROTOCOL, question)) {
      return problem(new BatonError("NOT_FOUND", `there is no ${path} here`));
    }
    if (request.method !== "POST") {
      return problem(
        new BatonError("METHOD_NOT_ALLOWED", `${path} is asked with POST, not ${request.method}`),
      );
    }
    try {
      const answer = await this.answer(
        question as ScheduleRequestName,
        parse(question as ScheduleRequestName, request.body),
      );
      return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(answer) };
    } catch (error) {
      if (error instanceof BatonError) return problem(error);
      this.#options.log?.warn({ err: error, question, from: request.from }, "a peer's question failed");
      return problem(new BatonError("INTERNAL", "the answer failed; see this node's log"));
    }
  }

  async #read({ term, after }: ScheduleRequestOf<"read">): Promise<ScheduleAnswerOf<"read">> {
    const found = await this.#readNotes({ after, limit: PAGE_NOTES }, term);
    const { value: notes = [] } = chunks(found).next() as { value?: typeof found };
    const more = notes.length < found.length || found.length === PAGE_NOTES;
    const blank = await this.#notes.blank();
    return { blank, notes, next: more ? notes.at(-1)!.name : null };
  }

  async #digest({ term, after }: ScheduleRequestOf<"digest">): Promise<ScheduleAnswerOf<"digest">> {
    const found = await this.#readNotes({ after, limit: PAGE_DIGESTS }, term);
    const blank = await this.#notes.blank();
    return {
      blank,
      digests: found.map(({ name, version }) => ({ name, version })),
      next: found.length === PAGE_DIGESTS ? found.at(-1)!.name : null,
    };
  }

  #readNotes(page: NotePage, term: Term): Promise<readonly ScheduleNote[]> {
    return this.#options.events.fenced("scheduleNotes.read", this.#notes.read(page, term));
  }

  async #place({ term, runs }: ScheduleRequestOf<"place">): Promise<ScheduleAnswerOf<"place">> {
    const { self, accepts, onPlaced, events } = this.#options;
    const placing = this.#notes.place(runs, { self, takes: accepts() }, term);
    const verdicts = await events.fenced("scheduleNotes.place", placing);
    const stored = runs.filter((_, index) => verdicts[index] === "stored");
    if (stored.length > 0) onPlaced(new Set(stored.map(({ job }) => job.queue)));
    return { verdicts };
  }
}

function parse<Q extends ScheduleRequestName>(question: Q, body: string): ScheduleRequestOf<Q> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new BatonError("BAD_JSON", "the body is not JSON");
  }
  const { success, data, error } = SCHEDULE_PROTOCOL[question].ask.safeParse(value);
  if (success) return data as ScheduleRequestOf<Q>;
  const [issue] = error.issues;
  const field = issue?.path.join(".") ?? "body";
  throw new BatonError("BAD_REQUEST", `${field}: ${issue?.message ?? "not understood"}`, { field });
}

function problem(error: BatonError): PeerReply {
  return {
    status: error.status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: error.code, message: error.message, ...error.details }),
  };
}
