/**
 * The work of a leader on schedules other than firing them: taking over, delivering intended jobs to their targets,
 * closing complete runs, updating members that missed changes, and removing tombstones that all members have.
 *
 * Every round is bounded: one try per run, one pass over the notes of a member, a limited number of occurrences.
 */

import type { NodeName } from "../../core/ids.ts";
import { compareVersions, isTombstone } from "../../core/schedules/schedule-register.ts";
import type { Platform } from "../../platform/platform.ts";
import type { ScheduleStore } from "../../store/store.ts";
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
  readonly schedules: Pick<ScheduleStore, "history">;
  readonly term: MajorityTable;
  readonly placing: RunPlacement;
  readonly signal: AbortSignal;
}

/** Until the term ends or a newer one is met. */
export async function maintainSchedules({
  clock,
  log,
  replicas,
  schedules,
  term,
  placing,
  signal,
}: MaintenanceOptions): Promise<void> {
  const { self } = replicas;
  /** Members that are being brought up to date: a silent one delays no other. */
  const busy = new Map<NodeName, Promise<void>>();

  /** A change of nothing confirms what is in doubt and closes what is done with. */
  const touch = (name: string): Promise<void> =>
    term.change(name, () => ({ draft: null, result: undefined }));

  const bringUp = (node: NodeName): void => {
    if (busy.has(node)) return;
    const work = catchUp(node)
      .catch((error: unknown) => log.warn({ err: error, node }, "a member could not be brought up to date"))
      .finally(() => busy.delete(node));
    busy.set(node, work);
  };

  const catchUp = async (node: NodeName): Promise<void> => {
    const complete = term.bringingUp(node);
    const pages = await term.pages(node, "digest", signal);
    if (pages.got !== "answer") return;
    const has = new Map(pages.value.flatMap(({ digests }) => digests).map((digest) => [digest.name, digest]));
    const unknown = [...has.keys()].some((name) => !term.note(name));
    if (unknown) await adopt(node);
    const lacks = term.notes().filter(({ name, version }) => {
      const known = has.get(name);
      return !known || compareVersions(known.version, version) < 0;
    });
    const each = Math.min(Math.max(Math.floor(HISTORY_TOTAL / (lacks.length || 1)), 1), HISTORY_MAX);
    const parts = [];
    for (const note of lacks) {
      const rows = note.notedThrough === null ? [] : await schedules.history(note.name, each);
      parts.push({ note, rows });
    }
    for (const piece of chunks(parts)) {
      const notes = piece.map(({ note }) => note);
      const rows = piece.flatMap((part) => part.rows);
      if ((await term.send(node, notes, rows, signal)).got !== "answer") return;
    }
    if ((await complete(signal)).got !== "answer") return;
    if (lacks.length > 0) log.info({ node, schedules: lacks.length }, "brought up to date");
  };

  /**
   * Schedules that only this member knows: put before it was in the cluster, or by a leader that got no majority. Neither
   * was ever answered as noted by the cluster, and neither has a job: they are taken in as if they were put now.
   */
  const adopt = async (node: NodeName): Promise<void> => {
    const pages = await term.pages(node, "read", signal);
    if (pages.got !== "answer") return;
    for (const note of pages.value.flatMap(({ notes }) => notes)) {
      if (term.note(note.name)) continue;
      await term.change(note.name, (known) => ({ draft: known ? null : note, result: null }));
    }
  };

  /** Gaps of this node come first: its history is the source for the others. */
  const fillGaps = async (): Promise<void> => {
    const order = (gap: HistoryGap): number => (gap.node === self ? 0 : 1);
    term.gaps.sort((a, b) => order(a) - order(b));
    for (const { node, schedule, from } of term.gaps.splice(0, GAPS_A_ROUND)) {
      const source = node === self ? from : self;
      const found = await term.ask(source, "history", { schedule, limit: HISTORY_MAX }, signal);
      if (found.got === "answer") await term.send(node, [], found.value.occurrences, signal);
    }
  };

  const forgetRemovals = async (): Promise<void> => {
    if (term.behind().length > 0) return;
    const before = clock.now() - REMOVALS_KEPT_MS;
    const old = term
      .notes()
      .filter((note) => isTombstone(note) && note.changedAt < before && term.confirmed(note.name))
      .map(({ name, version }) => ({ name, version }));
    for (const names of chunks(old)) {
      const answers = await Promise.all(
        replicas.members().map((node) => term.ask(node, "forget", { term: term.term, names })),
      );
      // One that has not forgotten would bring it back.
      if (answers.every(({ got }) => got === "answer"))
        for (const { name, version } of names) term.drop(name, version);
    }
  };

  const round = async (): Promise<void> => {
    await term.ready();
    for (const node of term.behind()) bringUp(node);
    const names = term.notes().map(({ name }) => name);
    const doubtful = names.filter((name) => !term.confirmed(name));
    for (const name of doubtful) await touch(name);
    await placing.attempt(term, names);
    await Promise.all(placing.unclosed(term).map(touch));
    placing.tidy(term);
    await fillGaps();
    await forgetRemovals();
  };

  while (!signal.aborted && !term.superseded) {
    try {
      await round();
    } catch (error) {
      if (hasCode(error, "STALE_EPOCH")) break;
      log.warn({ err: error, epoch: term.term.epoch }, "schedules wait; trying again");
    }
    await clock.sleep(EVERY_MS, signal);
  }
  await Promise.all(busy.values());
}
