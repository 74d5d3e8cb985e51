/**
 * Delivers the jobs of intended runs to their targets, exactly once.
 *
 *     intended --> asked --+--> stored, or there already: complete, leaves the note at its next change
 *        ^                 +--> certainly not there: another target is noted, and asked
 *        '------ later ----+--> unknown: the same target is asked again until it answers
 *
 * "Certainly not there" is an answer of the target itself (it drains), which then also refuses requests that are still
 * in transit; or a call that did not reach it, for a run that this term intended and of which no earlier try ended as
 * unknown.
 */

import { jobId, parseJobId, type NodeName } from "../../core/ids.ts";
import type { OpenRun, RunToPlace } from "../../core/schedules/schedule-register.ts";
import { moveRuns, openRuns } from "../../core/schedules/schedule-register.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Placing, PlaceVerdict } from "../../store/schedule-notes.ts";
import type { NewJob } from "../../store/store.ts";
import type { PeerAnswer } from "../rpc/peer-rpc.ts";
import { chunks } from "../rpc/schedule-messages.ts";
import type { Replicas } from "./replicas.ts";
import type { MajorityTable } from "./majority-table.ts";

/** Where the job of an occurrence may go, best first; of none, this node takes it. */
export type Targets = (job: Pick<NewJob, "task" | "queue">) => readonly NodeName[];

/** Shorter, and a list of members that flickers (DNS) makes two jobs of one. */
const GONE_AFTER_MS = 600_000;

/** What this term knows of a run beyond its note. */
interface RunFacts {
  /** Intended by this term, so that no older leader has asked anybody. */
  minted: boolean;
  /** A try of this term may have arrived. */
  dark: boolean;
  asking: boolean;
  done: boolean;
  /** By the monotonic clock: since when its target is no member. */
  missingSince: number | null;
  readonly refusedBy: Set<NodeName>;
}

interface Unplaced {
  readonly schedule: string;
  readonly run: RunToPlace;
  readonly facts: RunFacts;
}

export class RunPlacement {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #replicas: Replicas;
  readonly #targets: Targets;
  readonly #facts = new Map<string, RunFacts>();

  constructor(platform: Pick<Platform, "clock" | "log">, replicas: Replicas, targets: Targets) {
    this.#platform = platform;
    this.#replicas = replicas;
    this.#targets = targets;
  }

  choose(job: Pick<NewJob, "task" | "queue">): NodeName {
    return this.#targets(job)[0] ?? this.#replicas.self;
  }

  mint(schedule: string, runs: readonly OpenRun[]): void {
    for (const run of runs) this.#facts.set(keyOf(schedule, run), { ...newFacts(), minted: true });
  }

  /** Whether the run is at its target; what is done need not be remembered any longer than its note has it. */
  isDone(schedule: string, run: OpenRun): boolean {
    return this.#facts.get(keyOf(schedule, run))?.done ?? false;
  }

  unclosed(term: MajorityTable): readonly string[] {
    const names = term.notes().filter((note) => openRuns(note).some((run) => this.isDone(note.name, run)));
    return names.map(({ name }) => name);
  }

  tidy(term: MajorityTable): void {
    const open = new Set(term.notes().flatMap((note) => openRuns(note).map((run) => keyOf(note.name, run))));
    for (const key of this.#facts.keys()) if (!open.has(key)) this.#facts.delete(key);
  }

  /** One try for every open run of these schedules that is not being asked about. Never rejects. */
  async attempt(term: MajorityTable, schedules: readonly string[]): Promise<void> {
    const unplaced: Unplaced[] = [];
    for (const schedule of schedules) {
      const note = term.note(schedule);
      if (!note || !term.confirmed(schedule)) continue;
      for (const run of openRuns(note)) {
        const facts = this.#factsOf(schedule, run);
        if (facts.done || facts.asking) continue;
        facts.asking = true;
        unplaced.push({ schedule, run, facts });
      }
    }
    try {
      for (let left = unplaced; left.length > 0;)
        left = await this.#moveOn(term, await this.#askAll(term, left));
    } catch (error) {
      this.#platform.log.warn({ err: error, epoch: term.term.epoch }, "scheduled jobs could not be placed");
    } finally {
      for (const { facts } of unplaced) facts.asking = false;
    }
  }

  /** Answers with those that are certainly not at their targets. */
  async #askAll(term: MajorityTable, unplaced: readonly Unplaced[]): Promise<Unplaced[]> {
    const groups = Map.groupBy(unplaced, ({ run }) => run.target);
    const lanes = [...groups.values()].map(async (group) => {
      const refused: Unplaced[] = [];
      for (const piece of chunks(group)) {
        const { target } = piece[0]!.run;
        const runs = piece.map(({ schedule, run }) => placingOf(term, schedule, run));
        const answer = await term.ask(target, "place", { term: term.term, runs });
        refused.push(...piece.filter((one, index) => this.#isRefusal(one, answer, index)));
      }
      return refused;
    });
    return (await Promise.all(lanes)).flat();
  }

  #isRefusal(
    one: Unplaced,
    answer: PeerAnswer<{ verdicts: readonly PlaceVerdict[] }>,
    index: number,
  ): boolean {
    const { facts } = one;
    if (answer.got === "answer") {
      facts.done = answer.value.verdicts[index] !== "absent";
      return !facts.done;
    }
    if (answer.got === "refused") return this.#isGone(one) || (facts.minted && !facts.dark);
    if (answer.got === "stale") return false;
    if (!facts.dark) {
      const { schedule, run } = one;
      this.#platform.log.warn(
        { schedule, at: run.at, job: run.job, target: run.target, reason: answer.reason },
        "it is unknown whether a scheduled job was stored; its node is asked until it answers",
      );
    }
    facts.dark = true;
    return false;
  }

  /** Removed from the cluster for so long that it is no slip of the list of members. */
  #isGone({ schedule, run, facts }: Unplaced): boolean {
    const now = this.#platform.clock.monotonic();
    if (this.#replicas.members().includes(run.target)) {
      facts.missingSince = null;
      return false;
    }
    facts.missingSince ??= now;
    if (now - facts.missingSince < GONE_AFTER_MS) return false;
    this.#platform.log.warn(
      { schedule, at: run.at, job: run.job, target: run.target },
      "a scheduled job's node is no member any more; the job goes to another one",
    );
    return true;
  }

  /**
   * Notes other targets and answers with what is to be asked there. A run that all have refused is noted anew, because a
   * refusal holds for the version that it was given to, and is asked later.
   */
  async #moveOn(term: MajorityTable, refused: readonly Unplaced[]): Promise<Unplaced[]> {
    const moved: Unplaced[] = [];
    for (const [schedule, group] of Map.groupBy(refused, (one) => one.schedule)) {
      const moves = new Map<number, Pick<OpenRun, "job" | "target">>();
      for (const { run, facts } of group) {
        facts.refusedBy.add(run.target);
        const candidates = [...this.#targets(run.template), this.#replicas.self];
        const target = candidates.find((node) => !facts.refusedBy.has(node)) ?? candidates[0]!;
        moves.set(run.at, { target, job: jobId(target, parseJobId(run.job)!.uuid) });
      }
      await term.change(schedule, (note) => {
        const facts = { epoch: term.term.epoch, now: this.#platform.clock.now() };
        return { ...moveRuns(note!, moves, facts), result: null };
      });
      for (const { run, facts } of group) {
        const to = moves.get(run.at)!;
        Object.assign(facts, { minted: true, dark: false, missingSince: null });
        if (facts.refusedBy.has(to.target)) facts.refusedBy.clear();
        else moved.push({ schedule, run: { ...run, ...to }, facts });
      }
    }
    return moved;
  }

  #factsOf(schedule: string, run: OpenRun): RunFacts {
    const key = keyOf(schedule, run);
    const facts = this.#facts.get(key) ?? newFacts();
    this.#facts.set(key, facts);
    return facts;
  }
}

function newFacts(): RunFacts {
  return { minted: false, dark: false, asking: false, done: false, missingSince: null, refusedBy: new Set() };
}

function keyOf(schedule: string, { at }: OpenRun): string {
  return `${schedule} ${at}`;
}

function placingOf(term: MajorityTable, schedule: string, run: RunToPlace): Placing {
  const { at, runAt, job, template } = run;
  return {
    schedule,
    at,
    version: term.note(schedule)!.version,
    job: { ...template, id: job, runAt, delayMs: 0, idempotencyKey: null },
  };
}
