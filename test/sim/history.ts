/**
 * What happened in a simulated world: one line for each event, a hash of all lines, and counts. Stores that nodes open are
 * observed here, so that every accepted result and every write under a term is known whatever became of its node.
 * A promise that is broken at an instant is recorded as a violation; those about the end are in checks.ts.
 */

import { createHash } from "node:crypto";
import type { JobId } from "../../src/core/ids.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { majorityOf } from "../../src/core/leadership/bully.ts";
import { compareVersions, openRuns, type ScheduleNote } from "../../src/core/schedules/schedule-register.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { NoteBatch, Placing } from "../../src/store/schedule-notes.ts";
import type { Recorded, RunBatch, Settlement, Store, Verdict } from "../../src/store/store.ts";

const COUNTS = {
  kills: 0,
  stepKills: 0,
  forgottenVotes: 0,
  lateMessages: 0,
  restarts: 0,
  pauses: 0,
  partitions: 0,
  slowLinks: 0,
  diskLosses: 0,
  drains: 0,
  joins: 0,
  removals: 0,
  acknowledged: 0,
  cancels: 0,
  changes: 0,
  retries: 0,
  runs: 0,
  results: 0,
  terms: 0,
  occurrences: 0,
};
export type Counts = typeof COUNTS;

export class History {
  readonly counts: Counts = { ...COUNTS };
  readonly violations: string[] = [];
  readonly lines: string[] = [];
  readonly #clock: Clock;
  readonly #hash = createHash("sha256");
  /** By job: the runs whose result was accepted, by epoch. */
  readonly #settled = new Map<JobId, Set<number>>();
  readonly #completed = new Set<JobId>();
  /** By store and name: the newest note of each schedule. */
  readonly #notes = new Map<string, Map<string, ScheduleNote>>();
  /** Jobs that leaders have placed for occurrences of schedules. */
  readonly #placed = new Set<JobId>();
  /** By store and role: the newest epoch under which a write was accepted. */
  readonly #newest = new Map<string, number>();
  /** By role: which incarnation was granted an epoch. */
  readonly #holders = new Map<number, string>();
  #highest = 0;
  readonly #lost = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(line: string): void {
    const text = `${this.#clock.monotonic().toFixed(1)} ${line}`;
    this.lines.push(text);
    this.#hash.update(`${text}\n`);
  }

  digest(): string {
    return this.#hash.copy().digest("hex");
  }

  violated(what: string): void {
    this.add(`VIOLATION ${what}`);
    this.violations.push(what);
  }

  /** A node believes to lead the cluster from now on. */
  leads({ epoch, leader, incarnation }: Term): void {
    this.counts.terms++;
    this.add(`${leader} leads in term ${epoch}`);
    const before = this.#holders.get(epoch);
    if (before !== undefined && before !== incarnation)
      this.violated(`epoch ${epoch} was granted twice: to ${before} and ${incarnation}`);
    this.#holders.set(epoch, incarnation);
    if (epoch < this.#highest)
      this.violated(`an epoch went back: ${epoch} of ${leader} after ${this.#highest}`);
    this.#highest = Math.max(this.#highest, epoch);
  }

  /** The operator gives a job another chance: it may have another result. */
  retried(id: JobId): void {
    this.counts.retries++;
    this.#completed.delete(id);
  }

  /** The same store, with its accepted results and its writes under a term recorded. `name` is that of the disk. */
  observe(store: Store, name: string): Store {
    const subject = <Subject extends object>(target: Subject, path: string): Subject =>
      new Proxy(target, {
        get: (_, key) => {
          const found: unknown = Reflect.get(target, key, target);
          if (typeof found !== "function") return found;
          return async (...given: unknown[]) => {
            const answer: unknown = await (found as (...given: unknown[]) => unknown).apply(target, given);
            this.#wrote(name, `${path}.${String(key)}`, given, answer);
            return answer;
          };
        },
      });
    const observed = Object.create(store) as Record<string, unknown>;
    for (const key of ["jobs", "queues", "schedules", "terms", "agents", "samples", "scheduleNotes"] as const)
      if (store[key]) observed[key] = subject(store[key], key);
    observed["purge"] = async (...given: Parameters<Store["purge"]>) => {
      const removed = await store.purge(...given);
      this.#wrote(name, "purge", given, removed);
      return removed;
    };
    return observed as unknown as Store;
  }

  #wrote(store: string, method: string, given: readonly unknown[], answer: unknown): void {
    if (method === "jobs.record")
      this.#settle((given[0] as RunBatch).settlements, (answer as Recorded).settled);
    if (method === "scheduleNotes.write") this.#noted(store, (given[0] as NoteBatch).notes);
    if (method === "scheduleNotes.place")
      for (const { job } of given[0] as readonly Placing[]) this.#placed.add(job.id);
    const term = given.map(termIn).find((found) => found !== null);
    if (!term || answer === false) return;
    const key = `${store} ${term.role}`;
    const newest = this.#newest.get(key) ?? 0;
    if (term.epoch < newest)
      this.violated(`${store} accepted ${method} under term ${term.epoch} after ${newest} (${term.role})`);
    else this.#newest.set(key, term.epoch);
  }

  #settle(settlements: readonly Settlement[], verdicts: readonly Verdict[]): void {
    settlements.forEach(({ run, outcome }, at) => {
      if (verdicts[at] !== "accepted") return;
      this.counts.results++;
      const key = `${run.id} ${run.jobEpoch}`;
      this.add(`result of ${key}: ${outcome.kind}`);
      const settled = this.#settled.get(run.id) ?? new Set();
      if (settled.has(run.jobEpoch)) this.violated(`two results of one run were accepted: ${key}`);
      this.#settled.set(run.id, settled.add(run.jobEpoch));
      if (outcome.kind !== "completed") return;
      if (this.#completed.has(run.id)) this.violated(`job ${run.id} was completed twice`);
      this.#completed.add(run.id);
    });
  }

  #noted(store: string, notes: readonly ScheduleNote[]): void {
    const known = this.#notes.get(store) ?? new Map<string, ScheduleNote>();
    this.#notes.set(store, known);
    for (const note of notes) {
      const before = known.get(note.name);
      if (!before || compareVersions(before.version, note.version) < 0) known.set(note.name, note);
    }
  }

  /**
   * The disk of this node is empty from now on, and its epochs begin anew. A job may come back under its id and have its
   * results again only if it is still to be delivered: its caller has no answer yet and repeats the request, or it is an
   * occurrence that no majority knows to be placed.
   */
  lost(node: string, nodes: number, acknowledged: ReadonlySet<JobId>): void {
    this.#lost.set(node, this.#clock.monotonic());
    for (const key of this.#newest.keys()) if (key.startsWith(`${node} `)) this.#newest.delete(key);
    const open = this.#openRuns(majorityOf(nodes));
    this.#notes.delete(node);
    for (const id of this.#settled.keys()) {
      if (!id.startsWith(`${node}-`) || acknowledged.has(id)) continue;
      if (this.#placed.has(id) && !open.has(id)) continue;
      this.#settled.delete(id);
      this.#completed.delete(id);
    }
  }

  /** In the newest notes that so many stores have, or newer ones: the next leader reads no older ones. */
  #openRuns(required: number): ReadonlySet<JobId> {
    const all = [...this.#notes.values()].flatMap((notes) => [...notes.values()]);
    const confirmed = [...Map.groupBy(all, ({ name }) => name).values()].flatMap(
      (notes) => notes.sort((a, b) => compareVersions(b.version, a.version))[required - 1] ?? [],
    );
    return new Set(confirmed.flatMap((note) => openRuns(note).map(({ job }) => job)));
  }

  /** Whether the job was on a disk that was lost after this instant. */
  wasLost(id: JobId, at: number): boolean {
    return [...this.#lost].some(([node, lostAt]) => id.startsWith(`${node}-`) && lostAt >= at);
  }

  /** Whether the disk of this node was lost after this wall time. */
  lostAfter(node: string, at: number): boolean {
    const lostAt = this.#lost.get(node);
    return lostAt !== undefined && this.#clock.now() - this.#clock.monotonic() + lostAt >= at - 10_000;
  }
}

function termIn(value: unknown): Term | null {
  const { role, leader, incarnation, epoch, fence } = (value ?? {}) as Partial<Term> & { fence?: Term };
  if (fence) return fence;
  return role && leader && incarnation && typeof epoch === "number" ? (value as Term) : null;
}
