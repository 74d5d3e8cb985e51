/** The whole of it: a cluster under load, somebody hurt every few seconds, and then a calm moment and the verdict. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { percentile } from "../../../bench/statistics.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";
import { audit, type AuditReport } from "./audit.ts";
import { Chaos } from "./chaos.ts";
import { Fleet } from "./fleet.ts";
import { LateWrites } from "./late-writes.ts";
import { Load } from "./load.ts";
import { Witness } from "./witness.ts";

export interface ProofOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly say: (text: string) => void;
  /** How often it is told how things are; 0 for never. */
  readonly progressMs: number;
}

/** Jobs a second are about callers times 1.4 / pause. */
const CALLERS = 4;
const CALL_PAUSE_MS = 450;
const LOOK_MS = 1_000;
/** With children that are restarted within a second, nothing is ever down for this long. */
const STUCK_MS = 90_000;
const CALM_MS = 120_000;
/** A leader that stood still and is followed later than this was not followed because of that. */
const STOPPED_MS_MAX = 15_000;
/** Of what happened, told when something is wrong. */
const HISTORY = 40;

export async function proveControllers(scope: Scope, options: ProofOptions): Promise<readonly string[]> {
  const { seed, minutes, say, progressMs } = options;
  // Each has a chance of its own: what one draws does not depend on how often another did.
  const chanceOf = (part: number): (() => number) => {
    const random = seededRandom(seed * 16 + part);
    return () => random.chance();
  };
  const directory = mkdtempSync(join(tmpdir(), "baton-proof-"));
  const server = await PostgresServer.start({ durable: false, settings: ["track_commit_timestamp=on"] });
  atEnd(scope, () => server.stop());
  const store = await server.createDatabase();
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => {});
  const onBroken = (error: Error): void => broken.reject(error);
  const startedAt = systemClock.monotonic();
  const history: string[] = [];
  const note = (text: string): void => {
    history.push(`${((systemClock.monotonic() - startedAt) / 1_000).toFixed(1)} s ${text}`);
    if (history.length > HISTORY) history.shift();
  };

  const common = { onBroken, mark: systemRandom.uuid(), directory, store };
  const fleet = await Fleet.make({ ...common, chance: chanceOf(1) });
  atEnd(scope, () => fleet.end());
  const run = async (): Promise<readonly string[]> => {
    fleet.members.forEach((member) => member.start());
    await fleet.settled(60_000);
    const { urls } = fleet;
    const witness = await Witness.watch(scope, store, chanceOf(2));
    const pace = { callers: CALLERS, pauseMs: CALL_PAUSE_MS };
    const load = new Load({ urls, chance: chanceOf(3), python: fleet.hasPython, onBroken, ...pace });
    const lateWrites = new LateWrites({ witness, urls, chance: chanceOf(4), onBroken });
    const chaos = new Chaos({ fleet, lateWrites, chance: chanceOf(5), say: note, onBroken });
    atEnd(scope, () => Promise.all([load.abandon(), lateWrites.stop(), chaos.stop()]));
    load.start();
    lateWrites.start();
    chaos.start();

    const until = systemClock.monotonic() + minutes * 60_000;
    let [ended, movedAt, toldAt] = [0, systemClock.monotonic(), systemClock.monotonic()];
    for (let now = movedAt; now < until; now = systemClock.monotonic()) {
      await systemClock.sleep(Math.min(LOOK_MS, until - now));
      const counts = await witness.counts();
      if (counts.ended > ended) [ended, movedAt] = [counts.ended, now];
      if (now - movedAt > STUCK_MS)
        throw new Error(`no job has ended for ${STUCK_MS} ms: ${JSON.stringify(counts)}`);
      if (progressMs === 0 || now - toldAt < progressMs) continue;
      toldAt = now;
      const hurt = [...chaos.counts.values()].reduce((sum, n) => sum + n, 0);
      say(
        `${((now - startedAt) / 1_000).toFixed(0)} s: ${hurt} hurt, epoch ${await witness.epoch()}, ${load.acknowledged.size} jobs acknowledged, ${ended} ended, ${counts.running} run, ${counts.waiting} wait; ${lateWrites.answers.stale} late writes refused`,
      );
    }

    await chaos.stop();
    await load.stop();
    await eventually(
      "all jobs to end",
      async () => {
        const { waiting, running } = await witness.counts();
        return waiting + running === 0;
      },
      CALM_MS,
    );
    await lateWrites.stop();
    await fleet.settled(CALM_MS);
    const report = await audit({ witness, acknowledged: load.acknowledged, notes: fleet.notes });
    const gaps = await gapsOf(chaos, witness);
    await stopAll(fleet);
    return summary({ report, chaos, load, lateWrites, gaps, tookMs: systemClock.monotonic() - startedAt });
  };
  try {
    const lines = await Promise.race([run(), broken.promise]);
    rmSync(directory, { recursive: true, force: true });
    return lines;
  } catch (error) {
    const what = `seed ${seed}, ${((systemClock.monotonic() - startedAt) / 1_000).toFixed(0)} s in; logs in ${directory}`;
    throw new Error(`${what}; what happened last:\n  ${history.join("\n  ")}`, { cause: error });
  }
}

/** Agents first, so that they can give back what they have; then everybody must be gone. */
async function stopAll(fleet: Fleet): Promise<void> {
  for (const members of [fleet.agents, fleet.nodes]) {
    const exits = await Promise.all(members.map((member) => member.stop()));
    exits.forEach(({ code, signal }, at) => {
      if (code !== 0) throw new Error(`${members[at]!.name} did not stop as it should: ${code} ${signal}`);
    });
  }
  const left = fleet.leftovers();
  if (left.length > 0) throw new Error(`left behind: ${JSON.stringify(left)}`);
}

interface Gaps {
  readonly killed: readonly number[];
  readonly stopped: readonly number[];
  readonly otherToo: readonly number[];
}

/** From the death of each leader to the first job that was leased under a later term. */
async function gapsOf({ deaths, hurts }: Chaos, witness: Witness): Promise<Gaps> {
  const gaps = { killed: [] as number[], stopped: [] as number[], otherToo: [] as number[] };
  for (const { at, epoch, how, node, standby } of deaths) {
    const leasedAt = await witness.leasedAfter(epoch);
    // One that stood still not quite long enough went on under its term.
    if (leasedAt === null || (how === "stopped" && leasedAt - at > STOPPED_MS_MAX)) continue;
    const undisturbed =
      standby && !hurts.some((hurt) => hurt.node !== node && hurt.at >= at && hurt.at < leasedAt);
    gaps[undisturbed ? how : "otherToo"].push(Math.max(0, leasedAt - at));
  }
  return gaps;
}

function summary(all: {
  readonly report: AuditReport;
  readonly chaos: Chaos;
  readonly load: Load;
  readonly lateWrites: LateWrites;
  readonly gaps: Gaps;
  readonly tookMs: number;
}): readonly string[] {
  const { report, chaos, load, lateWrites, gaps } = all;
  const { stale, notLeader, replayed, none } = lateWrites.answers;
  const ms = (list: readonly number[]): string =>
    list.length === 0
      ? "none"
      : `p50 ${percentile(list, 0.5).toFixed(0)} ms, p99 ${percentile(list, 0.99).toFixed(0)} ms, max ${percentile(list, 1).toFixed(0)} ms (${list.length})`;
  const counts = [...chaos.counts].toSorted(([, a], [, b]) => b - a).map(([what, n]) => `${n} ${what}`);
  const begun = [...report.begun].toSorted(([a], [b]) => a - b).map(([times, n]) => `${n} jobs ${times}×`);
  return [
    `${(all.tookMs / 60_000).toFixed(1)} minutes; ${counts.join(", ")}`,
    `${report.grants} terms; ${report.writes} writes of leaders, none under an older term than one that was granted before`,
    `${report.jobs} jobs acknowledged (${load.refusals} tries refused or unanswered, ${load.repeated} repeated in doubt), each ended as it should and once; none lost, none left`,
    `${report.claims} leases of jobs; begun: ${begun.join(", ")}; ${report.crashes} crashes counted, ${report.released} given back, ${report.failures} failures; no run begun twice`,
    `late writes: ${stale} refused with STALE_EPOCH, ${notLeader} with NOT_LEADER, ${replayed} answered as at first, ${none} unanswered; ${lateWrites.overtaken} of them about jobs that were open, ${lateWrites.woken} read first by a leader that had stood still; none stored`,
    `from the death of a leader to the next accepted lease: ${ms(gaps.killed)}; stopped with SIGSTOP: ${ms(gaps.stopped)}; the other one hurt as well: ${ms(gaps.otherToo)}`,
    `children of a killed node-controller gone after: ${ms(chaos.orphanedMs)}; nobody left behind at the end`,
  ];
}
