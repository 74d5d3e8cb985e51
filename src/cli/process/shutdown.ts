/**
 * Handles signals until the end of the process.
 *
 *   running --signal--> draining --signal--> hurrying --signal--> gone (exit 1)
 *                          |                    |
 *                     stopped: exit 0      stopped: exit 0         too late in either: exit 1, and the rest is reported
 *
 * Exit 6 instead of 0: some jobs that this node owned found no other owner in time; the leader finds them.
 *
 * close-with-grace is not used, because its second signal ends the process at once; here it still interrupts the
 * running jobs and gives them back.
 */

import { reasonOf } from "../../core/errors.ts";
import type { Log } from "../../platform/log.ts";
import { Loop } from "../../platform/loop.ts";
import { EXIT } from "../failure.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

/** SIGBREAK is Ctrl-Break on Windows, where it is all that a process in another group can be sent. */
const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"] as const;

/** Ctrl-C arrives up to three times, also through npm and our launcher. Smaller, and an echo counts as a second signal on a busy machine. */
const ECHO_MS = 250;
/** What closing listeners and files may take after the drain. Smaller, and a slow disk looks like a hang. */
const SLACK_MS = 7_000;
/** How often the progress of a drain is reported. More often, and it fills the log. */
const PROGRESS_MS = 1_000;
/** How long a hurried stop may take: no waiting for jobs, only giving them back. */
const HURRY_MS = 5_000;

interface ShutdownOptions {
  readonly stop: (options: { hurry: boolean }) => Promise<void>;
  readonly released?: () => boolean;
  readonly progress?: () => string | null;
  readonly leftovers: () => string | null;
  readonly drainTimeoutMs: number;
}

export function untilStopped(
  terminal: Pick<Terminal, "clock" | "err">,
  options: ShutdownOptions,
  signals: Pick<NodeJS.EventEmitter, "on" | "removeListener"> = process,
): Promise<number> {
  const { clock } = terminal;
  return new Promise((resolve) => {
    let phase: "running" | "draining" | "hurrying" = "running";
    let lastSignalAt = Number.NEGATIVE_INFINITY;
    let cancelDeadline: () => void = () => {};

    const end = (code: number): void => {
      cancelDeadline();
      void progress.stop();
      for (const signal of STOP_SIGNALS) signals.removeListener(signal, onSignal);
      resolve(code);
    };
    const giveUp = (why: string): void => {
      const left = options.leftovers();
      say(terminal, `${why}; left behind: ${left ?? "no jobs"}`);
      end(1);
    };
    const stop = (hurry: boolean, deadlineMs: number): void => {
      cancelDeadline();
      cancelDeadline = clock.after(deadlineMs, () =>
        giveUp(`not stopped after ${deadlineMs / 1_000} s, exiting`),
      );
      options.stop({ hurry }).then(
        () => {
          tellProgress();
          end(options.released?.() ? EXIT.released : EXIT.ok);
        },
        (error: unknown) => {
          say(terminal, `stopping failed: ${reasonOf(error)}`);
          end(1);
        },
      );
    };
    let reported = "";
    const tellProgress = (): void => {
      const text = options.progress?.() ?? "";
      if (text !== reported && text !== "") say(terminal, text);
      reported = text;
    };
    const progress = new Loop(clock, async () => {
      tellProgress();
      return PROGRESS_MS;
    });
    const onSignal = (signal: string): void => {
      const now = clock.monotonic();
      if (now - lastSignalAt < ECHO_MS) return;
      lastSignalAt = now;
      if (phase === "running") {
        phase = "draining";
        const message = `${signal}: finishing what runs, for at most ${options.drainTimeoutMs / 1_000} s (signal again to stop now)`;
        say(terminal, message);
        stop(false, options.drainTimeoutMs + SLACK_MS);
        progress.start();
      } else if (phase === "draining") {
        phase = "hurrying";
        say(terminal, `${signal}: stopping now`);
        stop(true, HURRY_MS);
      } else giveUp(`${signal}: exiting at once`);
    };
    for (const signal of STOP_SIGNALS) signals.on(signal, onSignal);
  });
}

type Running = readonly { readonly id: string; readonly task: string }[];

export function leftoverText(running: Running): string | null {
  if (running.length === 0) return null;
  const shown = running.slice(0, 5).map((job) => `${job.id} (${job.task})`);
  const more = running.length > shown.length ? ` and ${running.length - shown.length} more` : "";
  return `${running.length} running ${running.length === 1 ? "job" : "jobs"}, which will be run again: ${shown.join(", ")}${more}`;
}

/** After a forgotten rejection the process goes on. After an uncaught exception its state is unknown: it ends, and its jobs count as crashed. */
export function reportUncaught(log: Log, running: () => Running): void {
  process.on("unhandledRejection", (reason) => {
    const fields = { err: reason, running: running() };
    log.error(fields, "a promise was rejected and nobody was waiting for it; is an await missing in a task?");
  });
  process.on("uncaughtException", (error) => {
    const fields = { err: error, running: running() };
    log.error(fields, "an exception was not caught; the process ends, and what runs is counted as crashed");
    process.exit(EXIT.failure);
  });
}
