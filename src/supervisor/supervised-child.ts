/**
 * One child of a supervisor: a process in its own group that is kept running while it is wanted.
 *
 *          turnOn               ended by itself, or wedged
 *   off ----------> running ---------------------------> waiting (1 s, 2 s, ... 30 s)
 *    ^                 | turnOff      ^---------------------------'
 *    '--- stopping <---'
 *          asked, asked to hurry, killed
 *
 * Off means that no process of its group is left: processes that a child started and did not end are killed after it.
 */

import { reasonOf } from "../core/errors.ts";
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { isDegraded, restartDelayMs, steadyAfterMs } from "../core/supervision.ts";
import type { RestartPolicy, WaitPolicy } from "../core/supervision.ts";
import type { Platform } from "../platform/platform.ts";

export interface ChildCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Whether it is one of ours, with a channel; any other has its standard input, which ends when it should. */
  readonly channel: boolean;
  readonly cwd?: string;
  /** The file that its output is appended to; ours without one. */
  readonly logFile?: string;
}

/** `stop` and `make_way`: we asked for it. `wedged`: we killed it. `itself`: by its own doing. `not_started`: it never ran. */
export type ExitCause = "stop" | "make_way" | "wedged" | "itself" | "not_started";

export interface LastExit {
  readonly at: number;
  readonly code: number | null;
  readonly signal: string | null;
  readonly cause: ExitCause;
  /** The same for people, with details. */
  readonly reason: string;
}

const REQUESTS = { stop: "asked to stop", make_way: "asked to make way for a term" } as const;

export function isRequested(exit: LastExit | null): boolean {
  return exit !== null && exit.cause in REQUESTS;
}

export interface ChildReport {
  readonly state: ChildState;
  readonly pid: number | null;
  readonly started_at: string | null;
  readonly restarts: number;
  readonly crashes_in_a_row: number;
  readonly last_exit: (Omit<LastExit, "at"> & { readonly at: string }) | null;
}

export type ChildState = "off" | "running" | "stopping" | "waiting";

export interface SupervisedChildOptions {
  readonly name: string;
  /** Asked for at each start; it may look who is there. */
  readonly command: () => Promise<ChildCommand> | ChildCommand;
  readonly restarts: RestartPolicy;
  readonly onMessage?: (message: unknown) => void;
  /** A process began or ended, or the state is another one. */
  readonly onChange: () => void;
  readonly onExit?: () => void;
  readonly platform?: NodeJS.Platform;
}

/** What the rest of a killed group may take to vanish. A zombie that nobody reaps stays for ever and does nothing. */
const GROUP_END_MS = 500;
const GROUP_LOOK_MS = 10;

export class SupervisedChild {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #o: SupervisedChildOptions;
  readonly #windows: boolean;
  #wanted = false;
  #process: ChildProcess | null = null;
  #state: ChildState = "off";
  #running: Promise<void> | null = null;
  #wake = new AbortController();
  /** Why the present process is being ended; null while it should live. */
  #ending: Pick<LastExit, "cause" | "reason"> | null = null;
  #killAt = Infinity;
  #cancelSteps: () => void = () => {};
  /** In a row, with no steady life between them. */
  #crashes = 0;
  #restarts = 0;
  #startedAt: number | null = null;
  #lastExit: LastExit | null = null;

  constructor(platform: Pick<Platform, "clock" | "log">, options: SupervisedChildOptions) {
    this.#platform = platform;
    this.#o = options;
    this.#windows = (options.platform ?? process.platform) === "win32";
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  get state(): ChildState {
    return this.#state;
  }

  get startedAt(): number | null {
    return this.#process ? this.#startedAt : null;
  }

  get lastExit(): LastExit | null {
    return this.#lastExit;
  }

  get degraded(): boolean {
    return isDegraded(this.#crashes, this.#o.restarts);
  }

  report(): ChildReport {
    const { state, pid, startedAt, lastExit } = this;
    return {
      state,
      pid,
      started_at: startedAt === null ? null : new Date(startedAt).toISOString(),
      restarts: this.#restarts,
      crashes_in_a_row: this.#crashes,
      last_exit: lastExit && { ...lastExit, at: new Date(lastExit.at).toISOString() },
    };
  }

  turnOn(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#wake = new AbortController();
    this.#running ??= this.#keepRunning();
  }

  /** Resolves when it is off. Asked again with less patience, it ends sooner. */
  async turnOff(patience: WaitPolicy, cause: keyof typeof REQUESTS = "stop"): Promise<void> {
    this.#wanted = false;
    this.#wake.abort();
    this.#end({ cause, reason: REQUESTS[cause] }, patience);
    await this.#running;
  }

  /** Ends a process that is of no use any more; another takes its place. */
  replace(reason: string): void {
    if (!this.#process || this.#ending !== null) return;
    const fields = { child: this.#o.name, pid: this.pid, reason };
    this.#platform.log.error(fields, "a child is wedged; it is killed");
    // Asking is for those who can hear.
    this.#end({ cause: "wedged", reason: `wedged: ${reason}` }, { hurryMs: 0, killMs: 0 });
  }

  send(message: object): boolean {
    const child = this.#process;
    if (!child?.connected) return false;
    child.send(message, () => {}); // whoever is gone by now is heard of by its exit
    return true;
  }

  async #keepRunning(): Promise<void> {
    while (this.#wanted) {
      await this.#live();
      const asked = isRequested(this.#lastExit);
      this.#o.onExit?.();
      if (!this.#wanted || asked) {
        this.#crashes = 0;
        continue;
      }
      this.#crashes++;
      const delayMs = restartDelayMs(this.#crashes, this.#o.restarts);
      const { code, signal, reason } = this.#lastExit!;
      const state = { crashes: this.#crashes, delayMs, degraded: this.degraded };
      const fields = { child: this.#o.name, code, signal, reason, ...state };
      this.#platform.log.error(fields, "a child ended; it is started again");
      this.#become("waiting");
      await this.#platform.clock.sleep(delayMs, this.#wake.signal);
      this.#restarts++;
    }
    // Nothing is awaited between the look at `wanted` and here, so whoever wants it on again starts another loop.
    this.#running = null;
    this.#become("off");
  }

  /** One life, until nobody of the group is left. */
  async #live(): Promise<void> {
    this.#ending = null;
    this.#killAt = Infinity;
    const { log, clock } = this.#platform;
    const { name } = this.#o;
    let cancelSteady: () => void = () => {};
    try {
      const command = await this.#o.command();
      // Turned off while its command was put together.
      if (!this.#wanted) return;
      const ended = this.#spawn(command);
      log.info({ child: name, pid: this.pid }, "a child was started");
      this.#become("running");
      cancelSteady = clock.after(steadyAfterMs(this.#o.restarts), () => {
        this.#crashes = 0;
        this.#o.onChange();
      });
      const { code, signal } = await ended;
      const pid = this.pid;
      if (pid !== null) await this.#endGroup(pid);
      const ending = this.#ending ?? ({ cause: "itself", reason: "ended by itself" } as const);
      const { reason } = ending;
      this.#lastExit = { at: clock.now(), code, signal, ...ending };
      log.info({ child: name, pid, code, signal, reason }, "a child has ended");
    } catch (error) {
      const reason = `could not be started: ${reasonOf(error)}`;
      this.#lastExit = { at: clock.now(), code: null, signal: null, cause: "not_started", reason };
    } finally {
      cancelSteady();
      this.#cancelSteps();
      this.#process = null;
    }
  }

  #spawn(command: ChildCommand): Promise<Pick<LastExit, "code" | "signal">> {
    const { file, args, environment, channel, cwd, logFile } = command;
    const output = logFile === undefined ? "inherit" : openSync(logFile, "a", 0o600);
    const child = spawn(file, [...args], {
      cwd,
      env: environment,
      // Its own group: a Ctrl-C in the terminal is for us, and so is the order in which the children end.
      detached: !this.#windows,
      windowsHide: true,
      stdio: channel ? ["ignore", output, output, "ipc"] : ["pipe", output, output],
    });
    if (typeof output === "number") closeSync(output);
    this.#process = child;
    this.#startedAt = this.#platform.clock.now();
    child.stdin?.on("error", () => {});
    if (this.#o.onMessage) child.on("message", this.#o.onMessage);
    return new Promise((resolve, reject) => {
      child.once("error", (error) => child.pid === undefined && reject(error));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
  }

  #end(ending: Pick<LastExit, "cause" | "reason">, { hurryMs, killMs }: WaitPolicy): void {
    const { clock, log } = this.#platform;
    const { name } = this.#o;
    const killAt = clock.monotonic() + killMs;
    if (!this.#process || killAt >= this.#killAt) return;
    const first = this.#ending === null;
    this.#ending ??= ending;
    this.#killAt = killAt;
    this.#cancelSteps();
    this.#become("stopping");
    const kill = (): void => {
      if (killMs > 0) {
        const fields = { child: name, pid: this.pid, afterMs: killMs };
        log.warn(fields, "a child did not end when asked; it is killed");
        const reason = `${ending.reason} and killed, because it did not end within ${killMs} ms`;
        this.#ending = { cause: ending.cause, reason };
      }
      this.#kill();
    };
    if (killMs <= 0) return kill();
    if (first) this.#ask();
    const cancels = [clock.after(hurryMs, () => this.#ask()), clock.after(killMs, kill)];
    this.#cancelSteps = () => cancels.forEach((cancel) => cancel());
  }

  #ask(): void {
    const child = this.#process;
    if (!child) return;
    if (!this.#windows) child.kill("SIGTERM");
    else if (!this.send({ baton: "stop" })) child.stdin?.end();
  }

  #kill(): void {
    const pid = this.pid;
    if (pid === null) return;
    if (this.#windows) this.#process!.kill("SIGKILL");
    else signalGroup(pid, "SIGKILL");
  }

  async #endGroup(group: number): Promise<void> {
    if (this.#windows || !isGroupAlive(group)) return;
    signalGroup(group, "SIGKILL");
    for (let waitedMs = 0; waitedMs < GROUP_END_MS && isGroupAlive(group); waitedMs += GROUP_LOOK_MS)
      await this.#platform.clock.sleep(GROUP_LOOK_MS);
  }

  #become(state: ChildState): void {
    this.#state = state;
    this.#o.onChange();
  }
}

// Process groups, as in POSIX: a negative id addresses all processes of the group.

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

export function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch (error) {
    // macOS says EPERM where only zombies are left.
    return !isGone(error);
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ESRCH" || code === "EPERM";
}
