/** Hurts somebody every few seconds: kill -9, or SIGSTOP for longer than a leader's lease. */

import { systemClock } from "../../../src/platform/clock.ts";
import { LEASE_MS, type Fleet, type Kind, type Victim } from "./fleet.ts";
import type { LateWrites } from "./late-writes.ts";
import type { Member } from "./member.ts";

export interface ChaosOptions {
  readonly fleet: Fleet;
  readonly lateWrites: LateWrites;
  readonly chance: () => number;
  readonly say: (text: string) => void;
  readonly onBroken: (error: Error) => void;
}

/** A leader that was killed, or stood still for longer than its lease. */
export interface Death {
  readonly at: number;
  readonly epoch: number;
  readonly how: "killed" | "stopped";
  readonly node: Member;
  /** Whether the other one stood by and was well. */
  readonly standby: boolean;
}

/** Whatever happened to a node-controller or its controller. */
export interface Hurt {
  readonly at: number;
  readonly node: Member;
}

/** A node needs about two seconds to be one again; sooner, and there is rarely a standby to take over. */
const PAUSE_MS = { min: 500, max: 5_500 };
const STOPPED_SHARE = 0.2;
/** Two at once: it is how the net below a net is found to have a hole. */
const DOUBLE_SHARE = 0.1;
const STOP_MS = { min: 1.2 * LEASE_MS, max: 2.5 * LEASE_MS };
const WEIGHTS: Readonly<Record<Kind, number>> = {
  supervisor: 2,
  controller: 3,
  moonlighter: 3,
  agent: 3,
  python: 2,
  sentinel: 0.5,
  machine: 1,
};
/** Children of a killed node-controller are gone after 2 s; machines that are busy with other things get more. */
const ORPHANS_MS = 5_000;
const NOTICED_MS = 3_000;
/** A process that was being started may appear late. */
const SETTLED_MS = 1_000;
/** A shell that was killed is replaced after a second, and until then nobody watches over children that stand still. */
const UNWATCHED_MS = 2_000;

export class Chaos {
  readonly counts = new Map<string, number>();
  readonly deaths: Death[] = [];
  readonly hurts: Hurt[] = [];
  readonly orphanedMs: number[] = [];
  readonly #o: ChaosOptions;
  readonly #over = new AbortController();
  readonly #stopped = new Set<number>();
  /** When. A node-controller may need a moment to notice who is dead; in an hour, pids are given out again. */
  readonly #killed = new Map<number, number>();
  readonly #pending = new Set<Promise<void>>();
  #unwatchedUntil = 0;
  #loop: Promise<void> = Promise.resolve();

  constructor(options: ChaosOptions) {
    this.#o = options;
  }

  start(): void {
    this.#loop = this.#run().catch((error: unknown) => this.#o.onBroken(error as Error));
  }

  /** Nobody is hurt any more, and who stands still goes on. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#loop;
    await Promise.all(this.#pending);
  }

  async #run(): Promise<void> {
    const { chance } = this.#o;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await systemClock.sleep(PAUSE_MS.min + chance() * (PAUSE_MS.max - PAUSE_MS.min), signal);
      if (signal.aborted) return;
      await this.#hurt();
      if (chance() < DOUBLE_SHARE) await this.#hurt();
    }
  }

  async #hurt(): Promise<void> {
    const { fleet, chance, say } = this.#o;
    const roles = await fleet.roles();
    const victim = this.#pick(fleet.victims());
    if (!victim) return;
    const { kind, member, pids } = victim;
    const role = roles.get(member);
    const matters = ["supervisor", "controller", "machine"].includes(kind);
    const leads = role?.role === "LEADER" && matters;
    const stops = kind !== "sentinel" && chance() < STOPPED_SHARE;
    const name = `${stops ? "stopped" : "killed"} ${kind}${leads ? " of the leader" : ""}`;
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    say(`${name} ${member.name} ${pids.join(" ")}`);
    const standby = fleet.nodes.some((node) => {
      if (node === member || roles.get(node)?.role !== "STANDBY") return false;
      const children = [node.pid, node.report()?.controller.pid ?? null];
      return children.every((pid) => pid !== null && !this.#stopped.has(pid));
    });
    const died = leads && (kind !== "supervisor" || !stops);
    const at = systemClock.now();
    const death = { at, node: member, epoch: role?.leader_epoch ?? 0, standby } as const;
    if (matters) this.hurts.push({ at, node: member });
    if (died) this.deaths.push({ ...death, how: stops ? "stopped" : "killed" });
    if (stops) this.#later(this.#still(victim, died ? death.epoch : null));
    else this.#kill(victim);
  }

  #pick(victims: readonly Victim[]): Victim | undefined {
    const since = systemClock.monotonic() - NOTICED_MS;
    const dead = (pid: number): boolean => (this.#killed.get(pid) ?? -Infinity) > since;
    const free = victims.filter(({ pids }) => !pids.some((pid) => this.#stopped.has(pid) || dead(pid)));
    let at = this.#o.chance() * free.reduce((sum, { kind }) => sum + WEIGHTS[kind], 0);
    return free.find(({ kind }) => (at -= WEIGHTS[kind]) < 0);
  }

  #kill({ kind, member, pids }: Victim): void {
    const { fleet } = this.#o;
    if (kind === "sentinel") this.#unwatchedUntil = systemClock.monotonic() + UNWATCHED_MS;
    const watched = kind === "machine" || systemClock.monotonic() > this.#unwatchedUntil;
    for (const pid of pids) this.#killed.set(pid, systemClock.monotonic());
    const own = pids.filter((pid) => pid === member.pid);
    for (const pid of pids.filter((each) => !own.includes(each))) fleet.signal(pid, "SIGKILL");
    if (own.length === 0) return;
    member.kill();
    if (member.node && watched) this.#later(this.#gone(member, own[0]!));
  }

  /** Whoever was killed leaves nobody behind, also nobody whom it was about to start. */
  async #gone(member: Member, pid: number): Promise<void> {
    const { fleet } = this.#o;
    const from = systemClock.monotonic();
    for (let goneAt: number | null = null; ; await systemClock.sleep(50)) {
      const left = fleet.strays();
      const now = systemClock.monotonic();
      if (left.length > 0 || fleet.isThere(pid)) goneAt = null;
      else goneAt ??= now;
      if (goneAt === null && now - from > ORPHANS_MS) {
        const error = `left behind ${ORPHANS_MS} ms after ${member.name} was killed: ${JSON.stringify(left)}`;
        return this.#o.onBroken(new Error(error));
      }
      if (goneAt !== null && now - goneAt > SETTLED_MS) return void this.orphanedMs.push(goneAt - from);
    }
  }

  async #still({ member, pids }: Victim, epoch: number | null): Promise<void> {
    const { fleet, chance, lateWrites } = this.#o;
    for (const pid of pids) if (fleet.signal(pid, "SIGSTOP")) this.#stopped.add(pid);
    const held = epoch === null ? [] : await lateWrites.held();
    await systemClock.sleep(STOP_MS.min + chance() * (STOP_MS.max - STOP_MS.min), this.#over.signal);
    const answered =
      epoch === null ? null : await lateWrites.toStopped(member.node!.url, epoch, held).catch(() => null);
    // What was sent is to be the first that it reads.
    if (answered) await systemClock.sleep(200);
    for (const pid of pids) {
      this.#stopped.delete(pid);
      fleet.signal(pid, "SIGCONT");
    }
    await answered?.();
  }

  #later(step: Promise<void>): void {
    const pending = step.finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }
}
