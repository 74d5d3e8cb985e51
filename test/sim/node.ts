/**
 * One node of a simulated world: its disk, and the lives of its process one after the other. Each life is a whole node,
 * built by `createNode`, with clocks, randomness, files, store and network of the simulation.
 */

import { tmpdir } from "node:os";
import { loadSettings } from "../../src/config/load-settings.ts";
import type { Settings } from "../../src/config/settings.ts";
import type { NodeName } from "../../src/core/ids.ts";
import { VOTE_FILE } from "../../src/peers/bully/election/voter.ts";
import type { AnyTask, TaskContext } from "../../src/jobs/tasks/task.ts";
import { createNode, type BatonNode } from "../../src/node/baton-node.ts";
import type { GivenFabric } from "../../src/node/node-options.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { Files } from "../../src/platform/files.ts";
import type { Log } from "../../src/platform/log.ts";
import type { Random } from "../../src/platform/random.ts";
import type { Store } from "../../src/store/store.ts";
import type { PeerHandler, Transport } from "../../src/transport/transport.ts";
import { quickScrypt } from "../support/fake-platform.ts";
import { ProcessClock } from "../support/process-clock.ts";
import { seededRandom } from "../support/seeded-random.ts";
import type { Served } from "./client.ts";
import { SimDisk } from "./disk.ts";
import { probeOf, watchEnds } from "./node-network.ts";
import { sharedFabric } from "./shared.ts";
import type { World } from "./world.ts";

/** What a test plants: a part of a node that breaks a promise. */
export interface Bug {
  /** Breaks the store itself, so that what it does is still observed. */
  readonly store?: (store: Store, clock: Clock) => Store;
  readonly settings?: (settings: Settings) => Settings;
  readonly transport?: (transport: Transport) => Transport;
  readonly files?: (files: Files, clock: Clock) => Files;
}

const NEVER = new Promise<never>(() => {});

export interface Life extends Served {
  readonly clock: ProcessClock;
  readonly node: BatonNode;
  /** True from the end of its start until it is killed or stopped. */
  up: boolean;
}

export class SimNode {
  readonly name: NodeName;
  readonly url: string;
  readonly disk = new SimDisk();
  life: Life | null = null;
  /** Called when the process has stored its vote, before it answers. */
  onVote: ((text: string) => void) | null = null;
  /** It was asked to drain and nobody knows whether the request is still under way. */
  mayDrainLate = false;
  #stepsLeft = Infinity;
  readonly #world: World;
  #lives = 0;

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name as NodeName;
    this.url = `http://${name}:8420`;
  }

  get up(): boolean {
    return this.life?.up === true && this.life.clock.state === "runs";
  }

  /** Resolves when it has started, or has been killed over it. */
  async start(): Promise<void> {
    const { timeline, history, options } = this.#world;
    const lives = ++this.#lives;
    const seed = this.#world.seedOf(`${this.name} ${lives}`);
    const dice = seededRandom(seed);
    const clock = new ProcessClock(timeline, {
      // Clocks of machines differ by far less; the margin of a lease allows for a third.
      rate: 1 + (dice.chance() - 0.5) * 0.1,
      skewMs: Math.round((dice.chance() - 0.5) * 2_000),
    });
    const fabric: GivenFabric = this.#world.database
      ? sharedFabric(this.#world, this.url, clock, () => this.#step(clock))
      : this.#fabric(clock);
    const { bug } = options;
    const settings = settingsOf(this.name, this.#world);
    const node = await createNode({
      settings: bug?.settings?.(settings) ?? settings,
      tasks: this.#tasks(clock),
      http: false,
      clock,
      random: timedBy(dice, clock),
      files: this.#files(clock),
      machine: { hostname: this.name, cpuMs: () => 0, memoryShare: () => 0, scrypt: quickScrypt },
      log: this.#log(lives),
      fabric,
    });
    const life: Life = {
      clock,
      node,
      up: false,
      get executor() {
        return node.executor;
      },
    };
    this.life = life;
    history.add(`${this.name} starts (${lives})`);
    const killed = Promise.withResolvers<void>();
    this.#killed = killed.resolve;
    await Promise.race([killed.promise, this.#started(life)]);
  }

  #killed: () => void = () => {};

  async #started(life: Life): Promise<void> {
    const { history } = this.#world;
    try {
      await life.node.start();
      life.up = true;
      history.add(`${this.name} is up`);
      void this.#watchTerms(life);
    } catch (error) {
      history.add(`${this.name} did not start: ${String(error)}`);
      this.kill();
    }
  }

  async #watchTerms({ node }: Life): Promise<void> {
    const { history, nodes } = this.#world;
    for await (const term of node.services.leadership.changes(new AbortController().signal)) {
      if (!term) {
        history.add(`${this.name} leads no more`);
        continue;
      }
      history.leads(term);
      const leading = nodes.filter(({ life }) => life && life.node.services.leadership.held() !== null);
      if (leading.length > 1) history.violated(`two lead: ${leading.map(({ name }) => name).join(" and ")}`);
    }
  }

  /** Lets the process die before or after one of its next steps: a call to its store, a write of a file, a request. */
  dieAfter(steps: number): void {
    this.#stepsLeft = steps;
  }

  /** A process that has died takes no further step. */
  async #step(clock: ProcessClock): Promise<void> {
    if (this.life?.clock === clock && --this.#stepsLeft === 0) {
      this.#world.history.counts.stepKills++;
      this.#world.history.add(`${this.name} dies at a step`);
      this.kill();
    }
    if (clock.state === "ended") await NEVER;
  }

  /** The same object, with a step before and after each call. */
  #stepping<Subject extends object>(subject: Subject, clock: ProcessClock): Subject {
    return new Proxy(subject, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key, target);
        if (typeof found !== "function") return found;
        return async (...given: unknown[]) => {
          await this.#step(clock);
          const answer: unknown = await (found as (...given: unknown[]) => unknown).apply(target, given);
          await this.#step(clock);
          return answer;
        };
      },
    });
  }

  #files(clock: ProcessClock): Files {
    const { options } = this.#world;
    const opened = this.disk.files(clock);
    const files = options.bug?.files?.(opened, clock) ?? opened;
    const replace: Files["replace"] = async (path, text) => {
      await this.#step(clock);
      await files.replace(path, text);
      if (path.endsWith(VOTE_FILE)) this.onVote?.(text);
      await this.#step(clock);
    };
    return { ...files, replace };
  }

  /** SIGKILL. */
  kill(): void {
    this.#stepsLeft = Infinity;
    if (!this.life) return;
    this.life.up = false;
    this.life.clock.end();
    this.life = null;
    this.#unlisten();
    this.disk.crash();
    this.#killed();
  }

  /** SIGTERM; resolves when the process has ended. */
  async stop(): Promise<void> {
    const { life } = this;
    if (!life) return;
    life.up = false;
    await life.node.stop();
    if (this.life === life) this.kill();
  }

  #unlisten: () => void = () => {};

  #fabric(clock: ProcessClock): GivenFabric {
    const { network, history, options } = this.#world;
    const { url, name, disk } = this;
    const openStore = async (): Promise<Store> => {
      const store = disk.openStore(clock);
      const observed = history.observe(options.bug?.store?.(store, clock) ?? store, name);
      const { jobs, scheduleNotes } = observed;
      return Object.assign(Object.create(observed) as Store, {
        jobs: this.#stepping(jobs, clock),
        scheduleNotes: this.#stepping(scheduleNotes!, clock),
      });
    };
    const opened = network.transport(url, clock, name);
    const transport = options.bug?.transport?.(opened) ?? opened;
    const call = transport.call.bind(transport);
    const serve = (handler: PeerHandler): void => {
      this.#unlisten = network.listen(url, handler, clock);
    };
    const probe = probeOf(network, url, clock);
    return {
      openStore,
      network: {
        url,
        transport: Object.assign(transport, {
          call: async (...given: Parameters<typeof call>) => {
            await this.#step(clock);
            return call(...given);
          },
          serve,
          attach: () => async () => {},
          watch: async function* (to: string, signal: AbortSignal) {
            for await (const _ of watchEnds(network, clock, to, signal))
              yield { reason: "the process has ended" };
          },
        }) as unknown as NonNullable<GivenFabric["network"]>["transport"],
        probe,
        httpProbe: {
          ask: async (to, deadlineMs) => ((await probe(to, deadlineMs)) === "listening" ? null : "silent"),
          close: async () => {},
        },
      },
    };
  }

  /** The work that jobs do. Some of them fail at first, and some ignore that they should stop. */
  #tasks(clock: ProcessClock): readonly AnyTask[] {
    const { history } = this.#world;
    const run = async (payload: unknown, { job, signal, attempt }: TaskContext): Promise<unknown> => {
      const { ms, fails } = payload as { readonly ms: number; readonly fails: number };
      history.counts.runs++;
      history.add(`${this.name} runs ${job.id} ${job.jobEpoch}`);
      await clock.sleep(ms, signal);
      signal.throwIfAborted();
      if (attempt <= fails) throw new Error("fails as it was asked to");
      return { by: this.name };
    };
    return [{ name: "work", retry: { attempts: 10 }, run }] as readonly AnyTask[];
  }

  #log(life: number): Log {
    const note =
      (level: string) =>
      (fields: object, message: string): void => {
        const { err } = fields as { readonly err?: unknown };
        const why = err === undefined ? "" : `: ${err instanceof Error ? err.message : JSON.stringify(err)}`;
        this.#world.history.add(`${this.name}/${life} ${level}: ${message}${why}`);
      };
    return { debug: () => {}, info: note("info"), warn: note("warn"), error: note("error") };
  }
}

/** Ids made later sort later, also those of the next life. */
function timedBy(random: Random, clock: ProcessClock): Random {
  let last = 0;
  return {
    ...random,
    timedUuid: () => {
      last = Math.max(last + 1, clock.now());
      const stamp = last.toString(16).padStart(12, "0");
      return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${random.uuid().slice(15)}`;
    },
  };
}

function settingsOf(name: string, world: World): Settings {
  const { settings } = loadSettings({
    cwd: tmpdir(),
    environment: {
      BATON_NAME: name,
      ...clusterOf(name, world),
      BATON_DATA: `/sim/${name}`,
      BATON_CLUSTER__SECRET: "a3f90c7d5e1b48269c04d7be52a1f3680d9e",
      BATON_WORKER__CONCURRENCY: "4",
      BATON_WORKER__LEASE: "6s",
      BATON_WORKER__RENEW: "2s",
      BATON_DRAIN__TIMEOUT: "6s",
    },
  });
  const founds = world.joined && name === world.nodes[0]!.name;
  return {
    ...settings,
    // There is no listener, so no token is needed.
    http: { ...settings.http, host: "127.0.0.1" },
    // It has a cluster for others to join, and names no port, so that no socket is opened.
    ...(founds && { manager: { ...settings.manager, addr: "simulated" } }),
  };
}

function clusterOf(name: string, { nodes, database, joined }: World): Record<string, string> {
  if (database) return { BATON_STORE: "postgres://database/sim" };
  if (!joined)
    return { BATON_NODES: JSON.stringify(Object.fromEntries(nodes.map((node) => [node.name, node.url]))) };
  if (name === nodes[0]!.name) return {};
  const others = nodes.filter((node) => node.name !== name);
  return { BATON_JOIN: others.map(({ url }) => new URL(url).host).join(",") };
}
