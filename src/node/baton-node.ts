/**
 * One node, alone or in a cluster.
 *
 *   start    builds the layers and starts their services in order, with the listener open early (it refuses changes until the cluster
 *            has formed, and then the node takes work: active)
 *   drain    refuses new work, resigns, lets running jobs finish; on request the node stays up and can be resumed
 *   stop     drains, then stops the same services in reverse order
 *
 * Each start builds everything again, so no state of an earlier start remains.
 */

import type { OperationExecutor } from "../api/execute.ts";
import type { Mounted } from "../http/outer-callers.ts";
import type { NodeServices } from "../api/node-services.ts";
import { stillForming } from "../leadership/coordination.ts";
import { fabricOf } from "../config/fabric.ts";
import { loadSettings } from "../config/load-settings.ts";
import type { Settings } from "../config/settings.ts";
import { BatonError } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import type { DrainProgress, NodeStatus } from "../core/node.ts";
import { JobHandle } from "../jobs/job-handle.ts";
import { declarations, type Declarations } from "../jobs/schedules/schedule-declarations.ts";
import type { Task } from "../jobs/tasks/task.ts";
import { loadTaskFolder } from "../jobs/tasks/task-folder.ts";
import { byObject, notedTask, type SubmitOptions, type SubmitRequest } from "../jobs/submit/submitter.ts";
import { TaskRegistry, type TaskInfo } from "../jobs/tasks/task-registry.ts";
import { Deadline } from "../platform/loop.ts";
import { Lifecycle } from "../platform/service.ts";
import type { Guarantees, Submitted } from "../store/store.ts";
import { baseServices, compose, type Composed, workingServices } from "./compose.ts";
import type { NodeOptions } from "./node-options.ts";
import { platform } from "./platform.ts";
import { serviceList } from "./service-list.ts";

export type { NodeOptions } from "./node-options.ts";

/** A node alone waits so long for its first term; only a broken store makes it take more than milliseconds. */
const FIRST_TERM_MS = 10_000;
const FORMING_CHECK_MS = 100;

export async function createNode(options: NodeOptions = {}): Promise<BatonNode> {
  const settings = options.settings ?? loadSettings().settings;
  const tasks = new TaskRegistry(options.tasks);
  for (const dir of settings.tasks) for (const task of await loadTaskFolder(dir)) tasks.add(task);
  const declared = await declarations(tasks, options.schedules ?? [], {
    maxAttempts: settings.retry.attempts,
    timeoutMs: settings.jobs.timeoutMs,
  });
  return new BatonNode(settings, tasks, declared, options);
}

export class BatonNode extends Lifecycle {
  readonly #settings: Settings;
  readonly #tasks: TaskRegistry;
  readonly #declared: Declarations;
  readonly #options: NodeOptions;
  #composed: Composed | null = null;
  #released = 0;
  #hurry = new AbortController();
  #stopped = new AbortController();
  /** Aborted by `stop`, perhaps while the start still waits for its store. */
  #stopAsked = new AbortController();
  #changing: Promise<void> = Promise.resolve();

  constructor(settings: Settings, tasks: TaskRegistry, declared: Declarations, options: NodeOptions) {
    super();
    this.#declared = declared;
    this.#settings = settings;
    this.#tasks = tasks;
    this.#options = options;
  }

  /** What the API works with, for use in the same process. Of the last start, so not before the first one. */
  get services(): NodeServices {
    return this.#built.x.services;
  }

  /** Executes operations of the API in this process, as its HTTP server does. */
  get executor(): OperationExecutor {
    return this.#built.x.executor;
  }

  /** The API and the dashboard for a server of the program around this node (`batonjs/fastify`, `batonjs/express`). */
  get mounted(): Mounted {
    return this.#built.x.mounted;
  }

  /** Submits a job from this process. With a task of one's own, payload and result are typed. */
  async submit<Result, Input>(
    task: Task<any, Result, Input> | string,
    payload: Input,
    options: Omit<SubmitRequest, "task" | "payload"> & SubmitOptions = {},
  ): Promise<JobHandle<Awaited<Result>>> {
    const { jobs, clock } = this.services;
    const { client, trace, ...fields } = options;
    const named = typeof task === "string" ? { task } : byObject(task);
    const [submitted] = await this.submitMany([{ ...fields, ...named, payload }], { client, trace });
    return new JobHandle({ jobs, clock }, submitted!);
  }

  /** All of them or none. */
  submitMany(requests: readonly SubmitRequest[], options?: SubmitOptions): Promise<readonly Submitted[]> {
    return this.#built.w.submit(requests, options);
  }

  get url(): string {
    const { http } = this.#built.x;
    if (!http) throw new BatonError("STOPPED", "this node has no HTTP listener");
    return http.url;
  }

  get guarantees(): Guarantees {
    return this.services.guarantees;
  }

  tasks(): readonly TaskInfo[] {
    return this.#tasks.list();
  }

  runningJobs(): readonly { readonly id: JobId; readonly task: string }[] {
    return this.#composed?.w.worker.list() ?? [];
  }

  /** How far a drain is with handing over what this node owned; null where it owns nothing. */
  drainProgress(): DrainProgress | null {
    return this.#composed?.w.push?.owner?.progress() ?? null;
  }

  /** Jobs that the last drain left without a new owner. */
  get released(): number {
    return this.#released;
  }

  override start(): Promise<void> {
    this.#stopAsked = new AbortController();
    return super.start();
  }

  /** Drains and stops. With `hurry`, also while a gentle stop is under way, running jobs are asked to stop now. */
  override stop(options: { readonly hurry?: boolean } = {}): Promise<void> {
    if (options.hurry) this.#hurry.abort();
    this.#stopAsked.abort();
    return super.stop();
  }

  protected async onStart(): Promise<void> {
    this.#hurry = new AbortController();
    this.#stopped = new AbortController();
    const { postgres } = this.#settings;
    const p = platform(this.#settings, this.#tasks, this.#declared, this.#options);
    this.#options.observe?.(p.events);
    const waitMs = fabricOf(this.#settings) === "postgres" ? postgres.waitMs : 0;
    const list = serviceList(p, waitMs, this.#stopAsked.signal);
    try {
      const composed = await compose(p, this.#options, list);
      const { b, w } = composed;
      this.#composed = composed;
      await list.start(...baseServices(composed));
      // Not before: what is wrong with the database is told by the services that look at it.
      await b.store.noteTasks?.(Array.from(p.tasks.all(), (task) => notedTask(task, p.defaults)));
      if (!b.store.guarantees.shared) await this.#takeBackOwnJobs();
      // What peers have taken back from this node, and which queues were paused, while it was away.
      await Promise.all([w.peers?.retractions.collect(), w.peers?.pauses.collect()]);
      p.state.forming = this.#missingNodes();
      if (p.state.forming === null) {
        await this.#takeWork();
        await this.#setStatus("active");
      } else void this.#form();
    } catch (error) {
      this.#stopped.abort();
      await list.stop();
      throw error;
    }
    void this.#followRequests(this.#stopped.signal);
  }

  protected async onStop(): Promise<void> {
    const { x, list } = this.#built;
    this.#stopped.abort();
    x.joinServer?.goDown();
    await this.#changing;
    await this.#drain();
    // In reverse: peers hear that we leave while they can still reach us.
    await list.stop();
  }

  get #built(): Composed {
    if (this.#composed) return this.#composed;
    throw new BatonError("STOPPED", "the node has not been started");
  }

  /** From the refusal of new work to the end of what runs. False when it was called off in time: then the worker goes on. */
  async #drain(callOff?: AbortSignal): Promise<boolean> {
    const { p, e, w, d, list } = this.#built;
    const { push } = w;
    const { timeoutMs, cleanupMs } = this.#settings.drain;
    p.state.draining = true;
    this.#released = 0;
    w.inFlight.close();
    await this.#setStatus("draining");
    const early = { hurry: this.#hurry.signal, ...(callOff && { callOff }) };
    const [drained, handed] = await Promise.all([
      w.worker.drain({ timeoutMs, cleanupMs, ...early }),
      push?.owner?.running ? push.owner.drain(early) : null,
      w.inFlight.drained(timeoutMs, AbortSignal.any(Object.values(early))),
      // Leadership goes first: others may schedule and recover while we still wait for running jobs. Terms are given up before their
      // duties have ended, so that others may go on meanwhile.
      w.controller.drain(this.#hurry.signal).then(() => Promise.all([e.withdraw(), list.stop(d)])),
    ]);
    this.#released = handed ? handed.orphaned + handed.released : 0;
    if (!drained) return false;
    const { interrupted } = drained;
    p.events.emit("node.drained", { interrupted });
    if (interrupted > 0)
      p.log.info({ jobs: interrupted }, "running jobs were interrupted and will run again");
    return true;
  }

  async #resume(): Promise<void> {
    const { p, e, w } = this.#built;
    // A cluster that has not gathered is still waited for.
    const status = p.state.forming === null ? "active" : "joining";
    await e.stand();
    if (status === "active") await this.#takeWork();
    w.inFlight.open();
    p.state.draining = false;
    await this.#setStatus(status);
  }

  async #takeWork(): Promise<void> {
    const { w, list } = this.#built;
    if (w.push?.owner?.running) await w.push.owner.resume();
    await list.start(...workingServices(this.#built));
  }

  #missingNodes(): string | null {
    return stillForming(this.#built.b.membership.nodes(), this.#settings.cluster.minimumNodes);
  }

  async #form(): Promise<void> {
    const { p } = this.#built;
    const { signal } = this.#stopped;
    p.log.info({ missing: p.state.forming }, "waiting for the cluster to gather");
    while (!signal.aborted && p.state.forming !== null) {
      await p.clock.sleep(FORMING_CHECK_MS, signal);
      p.state.forming = this.#missingNodes();
    }
    if (signal.aborted) return;
    this.#change(async () => {
      if (p.state.draining) return; // a resume takes work then
      await this.#takeWork();
      await this.#setStatus("active");
      p.log.info({}, "the cluster has gathered");
    });
  }

  async #followRequests(signal: AbortSignal): Promise<void> {
    const { p, b, w, list } = this.#built;
    let callOff = new AbortController();
    for await (const request of b.membership.requests(signal)) {
      // A resume does not wait until the node has drained, and what runs is not interrupted for nothing.
      if (request === "resume") callOff.abort();
      else callOff = new AbortController();
      const { signal: calledOff } = callOff;
      this.#change(async () => {
        if ((request === "drain") === p.state.draining) return;
        p.log.info({}, request === "drain" ? "asked to drain" : "asked to take work again");
        if (request === "drain") {
          if (await this.#drain(calledOff)) await list.stop(w.push?.inbox, w.worker);
        } else await this.#resume();
      });
    }
  }

  /** One change of state after the other, and none after the stop. */
  #change(step: () => Promise<void>): void {
    this.#changing = this.#changing.then(async () => {
      if (this.#stopped.signal.aborted) return;
      await step().catch((error: unknown) =>
        this.#built.p.log.error({ err: error }, "a change of state failed"),
      );
    });
  }

  async #setStatus(status: NodeStatus): Promise<void> {
    const { p, b } = this.#built;
    await b.membership.setStatus(status);
    p.events.emit("node.status", status);
  }

  /**
   * A store of our own is ours whatever we were called before (container hosts have a new name at each start): waits for our
   * first term as its compactor and takes back what an earlier incarnation left running. In a shared store the leader does it.
   */
  async #takeBackOwnJobs(): Promise<void> {
    const { p, e, w } = this.#built;
    using limit = new Deadline(p.clock, FIRST_TERM_MS);
    // The terms of this role are numbered by the store that it compacts.
    const compactor = e.of("log_compactor");
    for await (const own of compactor.changes(limit.signal)) if (own) break;
    const term = compactor.held();
    if (!term) {
      const message = `no leadership of the own store within ${FIRST_TERM_MS / 1_000} s; see the log for the reason`;
      throw new BatonError("NO_LEADER", message);
    }
    await w.reaper.recover({ by: "everybody", except: p.identity.incarnation }, term);
  }
}
