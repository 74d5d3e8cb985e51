/**
 * The table of notes that a majority stores (schedules and pauses of queues), in the hands of one leader from the
 * beginning of its term.
 *
 *     ready():   read a majority -> highest version of each -> written back to a majority under this epoch
 *     change():  one after the other for each note: note -> next note -> a majority has it -> the caller is answered
 *
 * A change that no majority has confirmed stays valid in this term, and is sent again before any other change of that
 * note: the next leader may or may not find it, so nothing may contradict it. It does not place the runs of schedules.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { Draft, OpenRun, ScheduleNote, Version } from "../../core/schedules/schedule-register.ts";
import { closeRuns, compareVersions } from "../../core/schedules/schedule-register.ts";
import { newestNotes, readEnough } from "../../core/schedules/schedule-takeover.ts";
import type { Term } from "../../core/leadership/term.ts";
import { Batcher } from "../../platform/batcher.ts";
import { Mutex } from "../../platform/loop.ts";
import type { Log } from "../../platform/log.ts";
import type { Platform } from "../../platform/platform.ts";
import type { NotedOccurrence } from "../../store/store.ts";
import type { ReplyOf, RequestOf } from "../rpc/peer-routes.ts";
import type { PeerAnswer } from "../rpc/peer-rpc.ts";
import { chunks } from "../rpc/schedule-messages.ts";
import type { Replicas } from "./replicas.ts";
import type { ScheduleRoute } from "./schedule-handlers.ts";

export interface Change<T> {
  /** Null: nothing changes. */
  readonly draft: Draft | null;
  readonly rows?: readonly NotedOccurrence[];
  readonly result: T;
}

interface Write {
  readonly note: ScheduleNote;
  readonly rows: readonly NotedOccurrence[];
}

/** A member that had an older note of a schedule than `from`, so that its history may lack occurrences. */
export interface HistoryGap {
  readonly node: NodeName;
  readonly schedule: string;
  readonly from: NodeName;
}

const UP_TO_DATE: PeerAnswer<null> = { got: "answer", value: null, node: null };

export class MajorityTable {
  readonly term: Term;
  gaps: HistoryGap[] = [];
  readonly #replicas: Replicas;
  readonly #done: (schedule: string, run: OpenRun) => boolean;
  readonly #log: Log;
  /** Each in the membership that it had then. */
  readonly #upToDate = new Map<NodeName, string>();
  readonly #missed = new Map<NodeName, number>();
  readonly #notes = new Map<string, ScheduleNote>();
  /** Schedules whose note no majority has confirmed, with the occurrences that belong to it. */
  readonly #doubtful = new Map<string, readonly NotedOccurrence[]>();
  readonly #turns = new Map<string, Mutex>();
  readonly #writes: Batcher<Write, void>;
  #counter = 0;
  #ready: Promise<void> | null = null;
  #superseded = false;

  /** `done`: whether a run is certainly at its target. What is done leaves the note with its next change. */
  constructor(
    { clock, log }: Pick<Platform, "clock" | "log">,
    term: Term,
    replicas: Replicas,
    done: (schedule: string, run: OpenRun) => boolean,
  ) {
    this.term = term;
    this.#replicas = replicas;
    this.#done = done;
    this.#log = log;
    this.#writes = new Batcher({ clock, flush: (writes) => this.#flush(writes) });
  }

  /** A newer term is known: nothing of this one will be heeded any more. */
  get superseded(): boolean {
    return this.#superseded;
  }

  /** The note of this term, once `ready`. */
  note(name: string): ScheduleNote | undefined {
    return this.#notes.get(name);
  }

  notes(): readonly ScheduleNote[] {
    return [...this.#notes.values()];
  }

  /** Whether a majority has the note as it is: only then may its runs be placed. */
  confirmed(name: string): boolean {
    return !this.#doubtful.has(name);
  }

  /** Takes over from the terms before, once; after a failure the next call tries anew. */
  ready(): Promise<void> {
    this.#ready ??= this.#takeOver().catch((error: unknown) => {
      this.#ready = null;
      throw error;
    });
    return this.#ready;
  }

  /** Resolves when a majority of the present members has all notes. */
  async settle(): Promise<void> {
    const notes = this.notes();
    const behind = new Set(this.behind());
    await this.#replicas.majority("schedules cannot be handed over", async (node) =>
      behind.has(node) ? this.#sendAll(node, notes) : UP_TO_DATE,
    );
  }

  async change<T>(
    name: string,
    step: (note: ScheduleNote | undefined) => Change<T> | Promise<Change<T>>,
  ): Promise<T> {
    await this.ready();
    return this.#turnOf(name).run(async () => {
      this.#refuseIfSuperseded();
      const rows = this.#doubtful.get(name);
      if (rows) await this.#confirm(name, rows);
      const known = this.#notes.get(name);
      const base = known && closeRuns(known, (run) => this.#done(name, run));
      const { draft, rows: added = [], result } = await step(base);
      const next = draft ?? (base !== known ? base : null);
      if (next) {
        this.#notes.set(name, { ...next, version: this.#nextVersion() });
        await this.#confirm(name, added);
      }
      return result;
    });
  }

  /** Members that may lack something that this term knows. */
  behind(): readonly NodeName[] {
    return this.#replicas.members().filter((node) => this.#upToDate.get(node) !== this.#replicas.entry(node));
  }

  /** To be called before a member is given all; what it returns tells the member afterwards that it has all. */
  bringingUp(node: NodeName): (signal?: AbortSignal) => Promise<PeerAnswer<ReplyOf<"note">>> {
    const missed = this.#missed.get(node);
    const entry = this.#replicas.entry(node);
    return async (signal) => {
      const batch = { term: this.term, notes: [], occurrences: [], complete: true, entry };
      const answer = await this.ask(node, "note", batch, signal);
      if (answer.got === "answer" && this.#missed.get(node) === missed) this.#upToDate.set(node, entry);
      return answer;
    };
  }

  send(
    node: NodeName,
    notes: readonly ScheduleNote[],
    occurrences: readonly NotedOccurrence[],
    signal?: AbortSignal,
  ): Promise<PeerAnswer<ReplyOf<"note">>> {
    const batch = { term: this.term, notes, occurrences, complete: false, entry: "" };
    return this.ask(node, "note", batch, signal);
  }

  /** Asks under this term, and notices when the answer ends it. */
  async ask<Route extends ScheduleRoute>(
    node: NodeName,
    route: Route,
    request: RequestOf<Route>,
    signal?: AbortSignal,
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    const answer = await this.#replicas.ask(node, route, request, signal);
    if (answer.got === "stale") this.#superseded = true;
    return answer;
  }

  /** All pages of one member; STALE_EPOCH when it knows a newer term. */
  async pages<Route extends "read" | "digest">(
    node: NodeName,
    route: Route,
    signal?: AbortSignal,
  ): Promise<PeerAnswer<readonly ReplyOf<Route>[]>> {
    const pages: ReplyOf<Route>[] = [];
    let after: string | null = null;
    do {
      const request = { term: this.term, after } as RequestOf<Route>;
      const answer: PeerAnswer<ReplyOf<Route>> = await this.ask(node, route, request, signal);
      if (answer.got !== "answer") return answer;
      pages.push(answer.value);
      after = answer.value.next;
    } while (after !== null);
    return { got: "answer", value: pages, node: null };
  }

  drop(name: string, version: Version): void {
    if (this.#notes.get(name)?.version === version) this.#notes.delete(name);
  }

  async #takeOver(): Promise<void> {
    this.#refuseIfSuperseded();
    const answers = await this.#replicas.majority(
      "schedules cannot be taken over",
      (node) => this.pages(node, "read"),
      ({ answers: found, ...state }) =>
        readEnough({
          ...state,
          answers: [...found].map(([node, pages]) => this.#replicas.witness(node, pages[0]!)),
        }),
    );
    const read = new Map([...answers].map(([node, pages]) => [node, pages.flatMap(({ notes }) => notes)]));
    const newest = newestNotes(read, this.#replicas.self);
    this.gaps = gapsIn(read, newest);
    this.#notes.clear();
    this.#doubtful.clear();
    this.#upToDate.clear();
    const notes = [...newest.values()].map(({ note }) => ({ ...note, version: this.#nextVersion() }));
    // Each member by itself, so that one that misses a piece is not taken for complete.
    await this.#replicas.majority("schedules cannot be taken over", (node) => this.#handOver(node, notes));
    for (const note of notes) this.#notes.set(note.name, note);
    this.#log.info(
      { epoch: this.term.epoch, schedules: notes.length, read: [...read.keys()] },
      "schedules taken over",
    );
  }

  async #handOver(node: NodeName, notes: readonly ScheduleNote[]): Promise<PeerAnswer<unknown>> {
    const complete = this.bringingUp(node);
    const sent = await this.#sendAll(node, notes);
    return sent.got === "answer" ? complete() : sent;
  }

  async #sendAll(node: NodeName, notes: readonly ScheduleNote[]): Promise<PeerAnswer<unknown>> {
    for (const piece of chunks(notes)) {
      const answer = await this.send(node, piece, []);
      if (answer.got !== "answer") return answer;
    }
    return UP_TO_DATE;
  }

  async #confirm(name: string, rows: readonly NotedOccurrence[]): Promise<void> {
    this.#doubtful.set(name, rows);
    await this.#writes.add({ note: this.#notes.get(name)!, rows });
    this.#doubtful.delete(name);
  }

  async #flush(writes: readonly Write[]): Promise<void> {
    for (const piece of chunks(writes)) {
      const notes = piece.map(({ note }) => note);
      const occurrences = piece.flatMap(({ rows }) => rows);
      await this.#replicas.majority("a schedule cannot be noted", async (node) => {
        const answer = await this.send(node, notes, occurrences);
        if (answer.got !== "answer" || answer.value.blank) this.#misses(node);
        return answer;
      });
    }
  }

  #misses(node: NodeName): void {
    this.#upToDate.delete(node);
    this.#missed.set(node, (this.#missed.get(node) ?? 0) + 1);
  }

  #turnOf(name: string): Mutex {
    const turn = this.#turns.get(name) ?? new Mutex();
    this.#turns.set(name, turn);
    return turn;
  }

  #nextVersion(): Version {
    return { epoch: this.term.epoch, counter: ++this.#counter };
  }

  #refuseIfSuperseded(): void {
    if (!this.#superseded) return;
    throw new BatonError("STALE_EPOCH", `term ${this.term.epoch} is over; the schedules are in newer hands`, {
      epoch: this.term.epoch,
    });
  }
}

function gapsIn(
  read: ReadonlyMap<NodeName, readonly ScheduleNote[]>,
  newest: ReturnType<typeof newestNotes<NodeName>>,
): HistoryGap[] {
  const gaps: HistoryGap[] = [];
  for (const [node, notes] of read) {
    const known = new Map(notes.map(({ name, version }) => [name, version]));
    for (const [schedule, { note, from }] of newest) {
      const version = known.get(schedule);
      if (version && compareVersions(version, note.version) === 0) continue;
      if (note.notedThrough !== null) gaps.push({ node, schedule, from });
    }
  }
  return gaps;
}
