/**
 * The work of a leader on schedules other than firing them: taking over, delivering intended jobs to their targets,
 * closing complete runs, updating members that missed changes, and removing tombstones that all members have.
 *
 * Every round is bounded: one try per run, one pass over the notes of a member, a limited number of occurrences.
 */

import type { NodeName } from "../../core/ids.ts";
import type { ScheduleNote } from "../../core/schedules/schedule-register.ts";
import { compareVersions, isTombstone } from "../../core/schedules/schedule-register.ts";
import type { Platform } from "../../platform/platform.ts";
import type { NotedOccurrence, ScheduleStore } from "../../store/store.ts";
import { hasCode } from "../../core/errors.ts";
import { chunks } from "../rpc/schedule-messages.ts";
import type { Replicas } from "./replicas.ts";
import type { RunPlacement } from "./run-placement.ts";
import type { HistoryGap, MajorityTable } from "./majority-table.ts";

/** Shorter, and a silent member is asked too often; longer, and a run in doubt, or a member that is back, waits. */
const EVERY_MS = 1_000;
/** Occurrences of each schedule that are sent to a member that returns: enough for the pages that show them. */
const HISTORY_MAX = 100;
/** The same of all schedules together, but at least one of each: a new member must not cost what years have written. */
const HISTORY_TOTAL = 5_000;
const GAPS_A_ROUND = 50;
/** Removals are remembered so long that no call of that time is still under way. */
const REMOVALS_KEPT_MS = 24 * 3_600_000;

interface MaintenanceOptions extends Pick<Platform, "clock" | "log"> {
  readonly replicas: Replicas;
  /** This node's own store. */
  readonly schedules: Pick<ScheduleStore, "history">;
  readonly term: MajorityTable;
  readonly placing: RunPlacement;
  readonly signal: AbortSignal;
}

export class ScheduleMaintenance {
  readonly #o: MaintenanceOptions;
  /** Members that are being brought up to date: a silent one delays no other. */
  readonly #busy = new Map<NodeName, Promise<void>>();

  constructor(options: MaintenanceOptions) {
    this.#o = options;
  }

  /** Until the term ends or a newer one is met. */
  async run(): Promise<void> {
    while (!this.#o.signal.aborted && !this.#o.term.superseded) {
      try {
        await this.#round();
      } catch (error) {
        if (hasCode(error, "STALE_EPOCH")) break;
        this.#o.log.warn({ err: error, epoch: this.#o.term.term.epoch }, "schedules wait; trying again");
      }
      await this.#o.clock.sleep(EVERY_MS, this.#o.signal);
    }
    await Promise.all(this.#busy.values());
  }

  async #round(): Promise<void> {
    const term = this.#o.term;
    await term.ready();
    for (const node of term.behind()) this.#bringUp(node);
    const names = term.notes().map(({ name }) => name);
    const doubtful = names.filter((name) => !term.confirmed(name));
    for (const name of doubtful) await this.#touch(name);
    await this.#o.placing.attempt(term, names);
    await Promise.all(this.#o.placing.unclosed(term).map((name) => this.#touch(name)));
    this.#o.placing.tidy(term);
    await this.#fillGaps();
    await this.#forgetRemovals();
  }

  /** A change of nothing confirms what is in doubt and closes what is done with. */
  #touch(name: string): Promise<void> {
    return this.#o.term.change(name, () => ({ draft: null, result: undefined }));
  }

  #bringUp(node: NodeName): void {
    if (this.#busy.has(node)) return;
    const work = this.#catchUp(node)
      .catch((error: unknown) => {
        this.#o.log.warn({ err: error, node }, "a member could not be brought up to date");
      })
      .finally(() => this.#busy.delete(node));
    this.#busy.set(node, work);
  }

  async #catchUp(node: NodeName): Promise<void> {
    const term = this.#o.term;
    const complete = term.bringingUp(node);
    const pages = await term.pages(node, "digest", this.#o.signal);
    if (pages.got !== "answer") return;
    const has = new Map(pages.value.flatMap(({ digests }) => digests).map((digest) => [digest.name, digest]));
    const unknown = [...has.keys()].some((name) => !term.note(name));
    if (unknown) await this.#adopt(node);
    const lacks = term.notes().filter(({ name, version }) => {
      const known = has.get(name);
      return !known || compareVersions(known.version, version) < 0;
    });
    const each = Math.min(Math.max(Math.floor(HISTORY_TOTAL / (lacks.length || 1)), 1), HISTORY_MAX);
    const parts: { note: ScheduleNote; rows: readonly NotedOccurrence[] }[] = [];
    for (const note of lacks) {
      const rows = note.notedThrough === null ? [] : await this.#o.schedules.history(note.name, each);
      parts.push({ note, rows });
    }
    for (const piece of chunks(parts)) {
      const notes = piece.map(({ note }) => note);
      const rows = piece.flatMap((part) => part.rows);
      if ((await term.send(node, notes, rows, this.#o.signal)).got !== "answer") return;
    }
    if ((await complete(this.#o.signal)).got !== "answer") return;
    if (lacks.length > 0) this.#o.log.info({ node, schedules: lacks.length }, "brought up to date");
  }

  /**
   * Schedules that only this member knows: put before it was in the cluster, or by a leader that got no majority. Neither
   * was ever answered as noted by the cluster, and neither has a job: they are taken in as if they were put now.
   */
  async #adopt(node: NodeName): Promise<void> {
    const pages = await this.#o.term.pages(node, "read", this.#o.signal);
    if (pages.got !== "answer") return;
    for (const note of pages.value.flatMap(({ notes }) => notes)) {
      if (this.#o.term.note(note.name)) continue;
      await this.#o.term.change(note.name, (known) => ({ draft: known ? null : note, result: null }));
    }
  }

  /** Gaps of this node come first: its history is the source for the others. */
  async #fillGaps(): Promise<void> {
    const { self } = this.#o.replicas;
    const order = (gap: HistoryGap): number => (gap.node === self ? 0 : 1);
    this.#o.term.gaps.sort((a, b) => order(a) - order(b));
    for (const gap of this.#o.term.gaps.splice(0, GAPS_A_ROUND)) {
      const from = gap.node === self ? gap.from : self;
      const ask = { schedule: gap.schedule, limit: HISTORY_MAX };
      const found = await this.#o.term.ask(from, "history", ask, this.#o.signal);
      if (found.got === "answer")
        await this.#o.term.send(gap.node, [], found.value.occurrences, this.#o.signal);
    }
  }

  async #forgetRemovals(): Promise<void> {
    const term = this.#o.term;
    if (term.behind().length > 0) return;
    const before = this.#o.clock.now() - REMOVALS_KEPT_MS;
    const old = term
      .notes()
      .filter((note) => isTombstone(note) && note.changedAt < before && term.confirmed(note.name));
    if (old.length === 0) return;
    const names = old.map(({ name, version }) => ({ name, version }));
    for (const piece of chunks(names)) {
      const answers = await Promise.all(
        this.#o.replicas.members().map((node) => term.ask(node, "forget", { term: term.term, names: piece })),
      );
      // One that has not forgotten would bring it back.
      if (answers.every(({ got }) => got === "answer"))
        for (const one of piece) term.drop(one.name, one.version);
    }
  }
}
