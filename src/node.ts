/**
 * One node, alone or in a cluster.
 *
 *   start    store, coordination (joining), channels, elections, HTTP; worker and duties once the cluster has formed (active)
 *   drain    refuse new work, resign, let what runs come to its end; on a wish it stays up and can be resumed
 *   stop     drain, deregister, then the same list backwards
 */

import type { NodeServices, SubmitOptions, SubmitRequest, TaskInfo } from "./api/services.ts";
import { stillForming } from "./cluster/formation.ts";
import { loadSettings } from "./config/load.ts";
import type { Settings } from "./config/settings.ts";
import { storeOptions } from "./config/store-options.ts";
import { BatonError } from "./core/errors.ts";
import type { JobId, NodeName } from "./core/ids.ts";
import type { DrainProgress, NodeIdentity } from "./core/node.ts";
import { JobHandle } from "./jobs/job-handle.ts";
import type { Task } from "./jobs/task.ts";
import { loadTaskFolder } from "./jobs/task-folder.ts";
import { TaskRegistry } from "./jobs/task-registry.ts";
import type { NodeOptions, PartsOptions } from "./node-options.ts";
import { buildParts, type NodeParts } from "./node-parts.ts";
import { systemClock, type Clock } from "./platform/clock.ts";
import { silentLog, type Log } from "./platform/log.ts";
import { systemRandom } from "./platform/random.ts";
import { Lifecycle, type Service } from "./platform/service.ts";
import { databaseConnection, patience, type Patience } from "./shared-fabric.ts";
import { openStore } from "./store/open.ts";
import type { Guarantees, Store } from "./store/store.ts";

export type { NodeOptions } from "./node-options.ts";

/** A node alone waits so long for its first term; only a broken store makes it take more than milliseconds. */
const FIRST_TERM_MS = 10_000;
const FORMING_LOOK_MS = 100;

export async function createNode(options: NodeOptions = {}): Promise<BatonNode> {
  const settings = options.settings ?? loadSettings().settings;
  const tasks = new TaskRegistry(options.tasks);
  for (const dir of settings.tasks) for (const task of await loadTaskFolder(dir)) tasks.add(task);
  return new BatonNode(settings, tasks, options);
}

export class BatonNode extends Lifecycle {
  readonly #settings: Settings;
  readonly #tasks: TaskRegistry;
  readonly #options: NodeOptions & Pick<PartsOptions, "log" | "clock" | "random" | "http">;
  readonly #identity: NodeIdentity;
  readonly #clock: Clock;
  #log: Log;
  /** Of the last start: a store that was closed is opened anew, and all that works with it is built anew. */
  #built: NodeParts | null = null;
  #draining = false;
  #released = 0;
  #forming: string | null = "it is being started";
  #hurry = new AbortController();
  #stopped = new AbortController();
  /** Told to stop, perhaps while the start still waits for its store. */
  #unwanted = new AbortController();
  /** Drains and resumes, one after the other. */
  #steering: Promise<void> = Promise.resolve();

  constructor(settings: Settings, tasks: TaskRegistry, options: NodeOptions) {
    super();
    const { log = silentLog, clock = systemClock, random = systemRandom, http = true } = options;
    this.#settings = settings;
    this.#tasks = tasks;
    this.#options = { ...options, log, clock, random, http };
    this.#identity = { name: settings.name as NodeName, incarnation: random.uuid() };
    this.#clock = clock;
    this.#log = log;
  }

  get #parts(): NodeParts {
    if (!this.#built) throw new BatonError("STOPPED", "the node has not been started");
    return this.#built;
  }

  /** What the API works with, for use in the same process. */
  get services(): NodeServices {
    return this.#parts.services;
  }

  /** Submits a job from this process. With a task of one's own, payload and result are typed. */
  async submit<Result, Input>(
    task: Task<any, Result, Input> | string,
    payload: Input,
    options: Omit<SubmitRequest, "task" | "payload"> & SubmitOptions = {},
  ): Promise<JobHandle<Awaited<Result>>> {
    const { jobs } = this.services;
    const name = typeof task === "string" ? task : task.name;
    const { client, ...fields } = options;
    const [submitted] = await jobs.submit([{ ...fields, task: name, payload }], { client });
    return new JobHandle(jobs, submitted!);
  }

  get url(): string {
    if (!this.#parts.http) throw new BatonError("STOPPED", "this node has no HTTP listener");
    return this.#parts.http.url;
  }

  get guarantees(): Guarantees {
    return this.services.guarantees;
  }

  tasks(): readonly TaskInfo[] {
    return this.#tasks.list();
  }

  /** What runs here now. */
  runningJobs(): readonly { readonly id: JobId; readonly task: string }[] {
    return this.#built?.worker.list() ?? [];
  }

  /** How far a drain is with handing over what this node owned; null where it owns nothing. */
  drainProgress(): DrainProgress | null {
    return this.#built?.push?.owner?.progress() ?? null;
  }

  /** Jobs that the last drain left without a new owner. */
  get released(): number {
    return this.#released;
  }

  override start(): Promise<void> {
    this.#unwanted = new AbortController();
    return super.start();
  }

  /** Drains and stops. With `hurry`, also while a gentle stop is under way, running jobs are told to stop now. */
  override stop(options: { readonly hurry?: boolean } = {}): Promise<void> {
    if (options.hurry) this.#hurry.abort();
    this.#unwanted.abort();
    return super.stop();
  }

  protected async onStart(): Promise<void> {
    const whenAvailable = this.#patience();
    this.#draining = false;
    this.#forming = "it is being started";
    const store = await this.#build(whenAvailable);
    const {
      coordination,
      channels,
      followers,
      threads,
      leaders,
      controller,
      worker,
      load,
      inFlight,
      journal,
      http,
      peers,
      push,
    } = this.#parts;
    const started: Pick<Service, "stop">[] = [{ stop: () => store.close() }];
    const start = async (service: Service): Promise<void> => {
      await service.start();
      started.push(service);
    };
    this.#hurry = new AbortController();
    this.#stopped = new AbortController();
    inFlight.open();
    try {
      await journal.journal.start();
      for (const service of [load, ...(peers?.before ?? [])]) {
        await whenAvailable(() => service.start());
        started.push(service);
      }
      // Peers reach each other through their listeners, so there it comes first; elsewhere last, when all is ready for callers.
      if (http && peers) await start(http);
      const sinks = push ? [push.sink] : [];
      for (const service of [
        coordination,
        channels,
        followers,
        threads,
        ...sinks,
        leaders,
        controller,
        ...(peers?.after ?? []),
      ]) {
        await whenAvailable(() => service.start());
        started.push(service);
      }
      if (!store.guarantees.shared) await this.#takeBackOwnJobs();
      await peers?.settle();
      this.#forming = this.#missingNodes();
      if (http && !peers) await start(http);
      if (this.#forming === null) {
        started.push(...this.#pushed(), worker);
        await this.#takeWork();
        await coordination.membership.setStatus("active");
      } else void this.#form();
    } catch (error) {
      this.#stopped.abort();
      await this.#stopAll(started);
      throw error;
    }
    void this.#followWishes(this.#stopped.signal);
  }

  protected async onStop(): Promise<void> {
    const { store, coordination, channels, followers, threads, controller, worker, load, http, peers, push } =
      this.#parts;
    this.#stopped.abort();
    peers?.goDown();
    await this.#steering;
    await this.#parts.leaders.observe(false);
    await this.#drain();
    const services = [
      { stop: () => store.close() },
      load,
      channels,
      followers,
      threads,
      controller,
      ...(push ? [push.sink] : []),
      ...this.#pushed(),
    ];
    // In reverse: peers hear of our leaving while they can still reach us.
    const between = peers ? [...peers.before, ...(http ? [http] : []), coordination, ...peers.after] : [];
    const last = peers ? [] : http ? [coordination, http] : [coordination];
    await this.#stopAll([...services, ...between, worker, ...last]);
  }

  /**
   * From the refusal of new work to the end of what runs. What the others should know is told first. False when it was called off
   * in time: then the worker goes on.
   */
  async #drain(callOff?: AbortSignal): Promise<boolean> {
    const { coordination, leaders, controller, worker, inFlight, push } = this.#parts;
    const { timeoutMs, cleanupMs } = this.#settings.drain;
    this.#draining = true;
    this.#released = 0;
    inFlight.close();
    await this.#tell("draining", () => coordination.membership.setStatus("draining"));
    // Leadership goes first: others may schedule and recover while we still wait for running jobs.
    const resigned = controller.drain(this.#hurry.signal).then(() => this.#stopAll([leaders]));
    const early = { hurry: this.#hurry.signal, ...(callOff && { callOff }) };
    const [drained, handed] = await Promise.all([
      worker.drain({ timeoutMs, cleanupMs, ...early }),
      push?.owner?.running ? push.owner.drain(early) : null,
      inFlight.drained(timeoutMs, AbortSignal.any(Object.values(early))),
      resigned,
    ]);
    this.#released = handed ? handed.orphaned + handed.released : 0;
    if (!drained) return false;
    const { interrupted } = drained;
    this.#parts.journal.onDrained(interrupted);
    if (interrupted > 0)
      this.#log.info({ jobs: interrupted }, "running jobs were interrupted and will run again");
    return true;
  }

  async #resume(): Promise<void> {
    const { coordination, leaders, controller, inFlight } = this.#parts;
    // A cluster that has not gathered is still waited for.
    const status = this.#forming === null ? "active" : "joining";
    await leaders.observe(false);
    controller.resume();
    await leaders.start();
    if (status === "active") await this.#takeWork();
    inFlight.open();
    this.#draining = false;
    await this.#tell(status, () => coordination.membership.setStatus(status));
  }

  async #takeWork(): Promise<void> {
    const { worker, push } = this.#parts;
    if (push?.owner?.running) await push.owner.resume();
    for (const service of this.#pushed()) await service.start();
    await worker.start();
    await this.#parts.leaders.begin();
  }

  /** What begins with the first work and ends after the last, where jobs are pushed. */
  #pushed(): Service[] {
    const { push } = this.#parts;
    return push ? [...(push.owner ? [push.owner] : []), push.inbox] : [];
  }

  #missingNodes(): string | null {
    return stillForming(this.services.cluster.nodes(), this.#settings.cluster.minimumNodes);
  }

  /** Waits for the others, then takes work. */
  async #form(): Promise<void> {
    const { signal } = this.#stopped;
    this.#log.info({ missing: this.#forming }, "waiting for the cluster to gather");
    while (!signal.aborted && this.#forming !== null) {
      await this.#clock.sleep(FORMING_LOOK_MS, signal);
      this.#forming = this.#missingNodes();
    }
    if (signal.aborted) return;
    this.#steer(async () => {
      if (this.#draining) return; // a resume takes work then
      await this.#takeWork();
      await this.#parts.coordination.membership.setStatus("active");
      this.#log.info({}, "the cluster has gathered");
    });
  }

  async #followWishes(signal: AbortSignal): Promise<void> {
    let callOff = new AbortController();
    for await (const wish of this.#parts.coordination.membership.wishes(signal)) {
      // Whoever wants the node back does not wait until it has drained, and what runs is not interrupted for nothing.
      if (wish === "resume") callOff.abort();
      else callOff = new AbortController();
      const { signal: calledOff } = callOff;
      this.#steer(async () => {
        if ((wish === "drain") === this.#draining) return;
        this.#log.info({}, wish === "drain" ? "asked to drain" : "asked to take work again");
        if (wish === "drain") {
          const { worker, push } = this.#parts;
          if (await this.#drain(calledOff)) await this.#stopAll(push ? [push.inbox, worker] : [worker]);
          await this.#parts.leaders.observe(true);
        } else await this.#resume();
      });
    }
  }

  #steer(step: () => Promise<void>): void {
    this.#steering = this.#steering.then(async () => {
      if (this.#stopped.signal.aborted) return;
      await step().catch((error: unknown) => this.#log.error({ err: error }, "a change of state failed"));
    });
  }

  #patience(): Patience {
    const { signal } = this.#unwanted;
    return patience({ settings: this.#settings, clock: this.#clock, log: this.#log, signal });
  }

  /** Opens the store and builds everything that works with it. Answers with the store as the parts see it. */
  async #build(whenAvailable: Patience): Promise<Store> {
    const identity = this.#identity;
    const connection = databaseConnection(this.#settings, identity, this.#clock);
    const choice = storeOptions(this.#settings, connection);
    const store = await whenAvailable(() => openStore(choice));
    try {
      this.#built = buildParts({
        ...this.#options,
        settings: this.#settings,
        tasks: this.#tasks,
        identity,
        store,
        connection,
        draining: () => this.#draining,
        forming: () => this.#forming,
      });
    } catch (error) {
      await store.close();
      throw error;
    }
    this.#log = this.#built.log;
    return this.#built.store;
  }

  /** What the others should know; they find out by themselves when they cannot be told. */
  async #tell(status: string, tell: () => Promise<void>): Promise<void> {
    try {
      await tell();
    } catch (error) {
      this.#log.warn({ err: error, status }, "could not tell the others");
    }
  }

  /** In reverse order. What cannot be stopped is logged: expiry is the net. */
  async #stopAll(services: readonly Pick<Service, "stop">[]): Promise<void> {
    for (const service of [...services].reverse()) {
      try {
        await service.stop();
      } catch (error) {
        this.#log.error({ err: error }, "a service did not stop cleanly");
      }
    }
  }

  /**
   * A store of our own is ours whatever we were called before (container hosts have a new name at each start): waits for our
   * first term as its compactor and takes back what an earlier life left running. In a shared store whoever leads does it.
   */
  async #takeBackOwnJobs(): Promise<void> {
    const { leaders, reaper, identity } = this.#parts;
    const giveUp = new AbortController();
    const cancel = this.#clock.after(FIRST_TERM_MS, () => giveUp.abort());
    for await (const term of leaders.compactor.changes(giveUp.signal)) if (term) break;
    cancel();
    const term = leaders.compactor.held();
    if (!term)
      throw new BatonError(
        "NO_LEADER",
        `no leadership of the own store within ${FIRST_TERM_MS / 1_000} s; see the log for the reason`,
      );
    await reaper.recover({ by: "everybody", except: identity.incarnation }, term);
  }
}
