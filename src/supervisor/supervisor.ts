/**
 * The supervisor (node-controller): runs a controller and an agent as two processes, and ensures that the agent is off
 * while the controller leads.
 *
 *   baton controller --+-- baton start    gateway, scheduler; leader or standby
 *                      |        ^ may I lead? only when the agent is off
 *                      +-- baton agent    {name}-worker, while the controller is a standby
 *                      '-- sh             ends both if this process is killed
 *
 * Messages of the controller are handled in order, one after the other. This ensures that the agent is off before the
 * first write of a leader. The rules are in core/supervision.ts.
 */

import { newToken } from "../access/token-service.ts";
import { asksCallers } from "../config/checks.ts";
import type { Settings } from "../config/settings.ts";
import { BatonError } from "../core/errors.ts";
import { agentWanted, beforeLeading, exitCodeOf } from "../core/supervision.ts";
import type { ControllerState, WaitPolicy } from "../core/supervision.ts";
import { Mutex, within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import { agentCommand, agentName, controllerCommand, noAgentBecause } from "./child-commands.ts";
import type { ChildCommandOptions } from "./child-commands.ts";
import { lockDataFolder, readReport, writeReport, type SupervisorReport } from "./supervisor-report.ts";
import { messageOf, type FromController, type ToChild } from "./messages.ts";
import { ControllerClient } from "./controller-client.ts";
import { Sentinel } from "./sentinel.ts";
import { isRequested, SupervisedChild } from "./supervised-child.ts";
import { HangDetector } from "./hang-detector.ts";

export interface SupervisorOptions {
  readonly settings: Settings;
  readonly commands: Omit<ChildCommandOptions, "settings" | "agentToken">;
  /** Out of the environment, for the agent too; null for one that is made here if it is needed. */
  readonly token: string | null;
}

type SupervisorPlatform = Pick<Platform, "clock" | "random" | "log">;

/** What a child does after its drain: closing listeners and files. Its own limit is a little shorter. */
const STOP_SLACK_MS = 8_000;
/** For a child that must hurry; both of them fit into what the command line grants for it. */
const HURRY: WaitPolicy = { hurryMs: 300, killMs: 2_000 };
/** A node on the same machine that needs longer for a small answer is in trouble. */
const CALL_MS_MAX = 2_000;
/** Within the slack that a stop has. */
const RETIRE_MS = 1_000;
/** A node waits for its database at first, and ends by itself when that takes too long; one that does not hangs. */
const START_SLACK_MS = 60_000;

export class Supervisor extends Lifecycle {
  readonly #platform: SupervisorPlatform;
  readonly #o: SupervisorOptions;
  readonly #incarnation: string;
  readonly #startedAt: number;
  readonly #sentinel: Sentinel;
  readonly #controller: SupervisedChild;
  readonly #agent: SupervisedChild;
  readonly #watch: HangDetector;
  readonly #noAgent: string | null;
  /** Null where the agent needs none, or has one of its own. */
  readonly #agentToken: string | null;
  #unlock: (() => void) | null = null;
  /** Null while the controller has not said where it listens. */
  #client: ControllerClient | null = null;
  #standing: ControllerState | null = null;
  #phase: "running" | "stopping" | "stopped" = "running";
  #stoppingAt = Infinity;
  #hurry = false;
  #cancelStartLimit: () => void = () => {};
  #retired: () => void = () => {};
  readonly #messages = new Mutex();

  constructor(platform: SupervisorPlatform, options: SupervisorOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
    const { settings } = options;
    this.#incarnation = platform.random.uuid();
    this.#startedAt = platform.clock.now();
    this.#noAgent = noAgentBecause(settings);
    const agentToken = options.token === null && asksCallers(settings) ? newToken() : null;
    this.#agentToken = agentToken;
    this.#sentinel = new Sentinel(platform);
    const { controller } = settings;
    const restarts = {
      firstDelayMs: controller.restartFirstMs,
      delayMsMax: controller.restartMaxMs,
      degradedAfter: controller.degradedAfter,
    };
    const onChange = (): void => this.#changed();
    const commands = { ...options.commands, settings, agentToken };
    this.#controller = new SupervisedChild(platform, {
      name: "controller",
      command: () => {
        this.#limitStart();
        return controllerCommand(commands);
      },
      restarts,
      onChange,
      onMessage: (message) => this.#heard(message),
      onExit: () => this.#controllerEnded(),
    });
    this.#agent = new SupervisedChild(platform, {
      name: "agent",
      command: async () => agentCommand(commands, await this.#knownUrls()),
      restarts,
      onChange,
    });
    const queues = settings.worker.queues.length > 0 ? new Set(settings.worker.queues) : null;
    this.#watch = new HangDetector(platform, {
      wedgedAfterMs: controller.wedgedAfterMs,
      controller: () => (this.#controller.state === "running" ? this.#client : null),
      agent: () => {
        const { state, startedAt } = this.#agent;
        // While nobody leads, no agent gets work, and none is heard of.
        if (state !== "running" || startedAt === null || !this.#standing?.leader) return null;
        const known = controller.agentCommand.length === 0;
        return { name: agentName(settings), startedAt, queues, known };
      },
      onWedged: (child, reason) => (child === "controller" ? this.#controller : this.#agent).replace(reason),
    });
  }

  report(): SupervisorReport {
    const degraded = this.#controller.degraded || this.#agent.degraded;
    return {
      node: this.#o.settings.name,
      status: this.#phase === "running" && degraded ? "degraded" : this.#phase,
      pid: this.#o.commands.pid,
      incarnation: this.#incarnation,
      started_at: new Date(this.#startedAt).toISOString(),
      role: this.#standing?.role ?? null,
      leader_epoch: this.#standing?.epoch ?? null,
      url: this.#client?.url ?? null,
      controller: this.#controller.report(),
      agent:
        this.#noAgent === null
          ? { name: agentName(this.#o.settings), ...this.#agent.report() }
          : { none: this.#noAgent },
    };
  }

  /** Of children that were ended by this stop, and not of one that was in the way of a term, perhaps a moment ago. */
  get exitCode(): number {
    const ends = [this.#agent.lastExit, this.#controller.lastExit].filter((end) => end !== null);
    return exitCodeOf(ends.filter(({ at, cause }) => at >= this.#stoppingAt && cause === "stop"));
  }

  /** With `hurry`, also while a gentle stop is under way, the children must hurry. */
  override stop(options: { readonly hurry?: boolean } = {}): Promise<void> {
    if (options.hurry) {
      this.#hurry = true;
      if (this.#agent.state === "stopping") void this.#agent.turnOff(HURRY);
      if (this.#controller.state === "stopping") void this.#controller.turnOff(HURRY);
    }
    return super.stop();
  }

  protected override async onStart(): Promise<void> {
    const { data } = this.#o.settings;
    this.#unlock = lockDataFolder(data);
    if (!this.#unlock) throw inUse(data);
    this.#phase = "running";
    this.#hurry = false;
    await this.#sentinel.start();
    await this.#watch.start();
    this.#controller.turnOn();
  }

  /** The agent first: it gives its results to a controller, perhaps to ours. */
  protected override async onStop(): Promise<void> {
    this.#phase = "stopping";
    this.#stoppingAt = this.#platform.clock.now();
    this.#cancelStartLimit();
    await this.#watch.stop();
    await this.#client?.close();
    await this.#agent.turnOff(this.#gentle());
    await this.#messages.idle();
    await this.#retire();
    await this.#controller.turnOff(this.#gentle());
    await this.#sentinel.stop();
    this.#phase = "stopped";
    this.#changed();
    this.#unlock?.();
  }

  /** The agent's token is of no use any more; it ends by itself too, so this is not waited for long. */
  async #retire(): Promise<void> {
    if (this.#agentToken === null || this.#hurry || this.#controller.state !== "running") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#retired = resolve;
    this.#controller.send({ baton: "retire" } satisfies ToChild);
    await within(this.#platform.clock, RETIRE_MS, promise);
  }

  #gentle(): WaitPolicy {
    if (this.#hurry) return HURRY;
    const { timeoutMs } = this.#o.settings.drain;
    const killMs = timeoutMs + STOP_SLACK_MS;
    return { hurryMs: killMs, killMs };
  }

  #heard(value: unknown): void {
    const message = messageOf(value) as FromController | null;
    if (message === null) return;
    switch (message.baton) {
      case "started":
        this.#cancelStartLimit();
        this.#client = this.#clientOf(message.url);
        return this.#changed();
      case "standing": {
        const { role, epoch, leader } = message;
        return this.#next(async () => this.#stand({ role, epoch, leader }));
      }
      case "may_lead":
        return this.#next(() => this.#letLead(message.epoch));
      case "retired":
        return this.#retired();
    }
  }

  #stand(standing: ControllerState): void {
    this.#standing = standing;
    const on = agentWanted(standing);
    if (on === true && this.#noAgent === null && this.#phase === "running") this.#agent.turnOn();
    // Not waited for: whoever is about to lead asks, and then the agent has less time.
    if (on === false) void this.#agent.turnOff(this.#gentle());
    this.#changed();
  }

  async #letLead(epoch: number): Promise<void> {
    const { clock, log } = this.#platform;
    const { settings } = this.#o;
    const askedAt = clock.monotonic();
    await this.#agent.turnOff(beforeLeading(settings.controller.agentOffMs), "make_way");
    const fields = { epoch, tookMs: Math.round(clock.monotonic() - askedAt) };
    log.info(fields, "the agent is off; the controller may lead");
    // One that died by itself is another matter: what it ran may be why.
    const ended = isRequested(this.#agent.lastExit) ? [agentName(settings)] : [];
    this.#controller.send({ baton: "agent_off", epoch, ended } satisfies ToChild);
  }

  #controllerEnded(): void {
    this.#cancelStartLimit();
    void this.#client?.close();
    this.#client = null;
    this.#next(async () => {
      this.#standing = null;
      this.#changed();
    });
  }

  #next(step: () => Promise<void>): void {
    this.#messages.run(step).catch((error: unknown) => {
      this.#platform.log.error({ err: error }, "a message of the controller could not be acted on");
    });
  }

  #limitStart(): void {
    this.#cancelStartLimit();
    const limitMs = this.#o.settings.postgres.waitMs + START_SLACK_MS;
    this.#cancelStartLimit = this.#platform.clock.after(limitMs, () =>
      this.#controller.replace(`it did not start within ${limitMs / 1_000} s`),
    );
  }

  async #knownUrls(): Promise<readonly string[]> {
    const listed = Object.values(this.#o.settings.nodes);
    const seen = (await this.#client?.urls()) ?? [];
    return [...new Set([...seen, ...listed])];
  }

  #clientOf(url: string): ControllerClient {
    const { settings, token } = this.#o;
    const timeoutMs = Math.min(CALL_MS_MAX, settings.controller.wedgedAfterMs / 4);
    return new ControllerClient(this.#platform.clock, url, timeoutMs, token ?? this.#agentToken);
  }

  #changed(): void {
    const groups = [this.#controller.pid, this.#agent.pid].filter((pid) => pid !== null);
    this.#sentinel.guard(groups);
    const report = this.report();
    this.#controller.send({ baton: "report", report } satisfies ToChild);
    try {
      writeReport(this.#o.settings.data, report);
    } catch (error) {
      // A full disk must not end what still works.
      this.#platform.log.warn({ err: error }, "the state of the node-controller could not be written");
    }
  }
}

function inUse(data: string): BatonError {
  const other = readReport(data);
  const who = other ? `${other.node} (pid ${other.pid}, since ${other.started_at})` : "another one";
  return new BatonError("DATA_IN_USE", `a node-controller runs already in ${data}: ${who}`, {
    pid: other?.pid ?? null,
    incarnation: other?.incarnation ?? null,
  });
}
