/**
 * The controller's side of the control channel: asks its supervisor before it leads, and reports its role.
 *
 * Ending the process when the channel breaks is not done here, but in bin/baton.mjs, before anything else is loaded,
 * and by the sentinel (sentinel.ts) for a process that is too busy to notice.
 */

import type { NodeServices } from "../api/node-services.ts";
import type { BeforeLeading } from "../leadership/elector.ts";
import type { Settings } from "../config/settings.ts";
import { BatonError } from "../core/errors.ts";
import { roleOf } from "../core/leadership/role.ts";
import type { ControllerState } from "../core/supervision.ts";
import { heldBy } from "../core/leadership/term.ts";
import type { Clock } from "../platform/clock.ts";
import { repeat, within } from "../platform/loop.ts";
import { AGENT_TOKEN_VARIABLE, messageOf, SUPERVISOR_VARIABLE, type FromController } from "./messages.ts";
import type { SupervisorReport } from "./supervisor-report.ts";

export interface SupervisorConnection {
  send(message: FromController): void;
  receive(listener: (message: unknown) => void): void;
}

export interface ControlChannelOptions {
  readonly line: SupervisorConnection;
  /** How long the answer to "may I lead?" is waited for. */
  readonly patienceMs: number;
  /** What the agent beside this node will show; undefined where it needs nothing, or has something of its own. */
  readonly agentToken?: string | undefined;
}

/** How long the agent's token counts after its node was last able to say so. Shorter, and an agent is locked out after a long pause. */
const TOKEN_MS = 3_600_000;
/** How often the role is checked: no event reports a drain, or the term of another node. */
const LOOK_MS = 100;

export class ControlChannel {
  readonly #clock: Clock;
  readonly #o: ControlChannelOptions;
  readonly #waiting = new Map<number, (ended: readonly string[]) => void>();
  #report: SupervisorReport | null = null;
  #services: NodeServices | null = null;
  #retired = false;
  /** By the monotonic clock: when the agent's token is to count for longer; -Infinity before it counts at all. */
  #adoptAt = -Infinity;
  #adopting: Promise<void> | null = null;

  constructor(platform: { readonly clock: Clock }, options: ControlChannelOptions) {
    this.#clock = platform.clock;
    this.#o = options;
    options.line.receive((value) => {
      const message = messageOf(value);
      if (message?.baton === "agent_off") this.#waiting.get(message.epoch)?.(message.ended);
      else if (message?.baton === "report") this.#report = message.report;
      else if (message?.baton === "retire") void this.#retire();
    });
  }

  readonly supervised = (): Readonly<Record<string, unknown>> | null => this.#report && { ...this.#report };

  /** A node-controller that does not answer may have an agent running, so there is no leading without an answer. */
  readonly beforeLeading: BeforeLeading = async ({ epoch }, signal) => {
    const { line, patienceMs } = this.#o;
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    this.#waiting.set(epoch, resolve);
    try {
      line.send({ baton: "may_lead", epoch });
      const ended = await within(this.#clock, patienceMs, promise, signal);
      if (ended !== undefined || signal.aborted) return ended ?? [];
    } finally {
      this.#waiting.delete(epoch);
    }
    const message = `the node-controller did not say within ${patienceMs} ms that the agent is off`;
    throw new BatonError("DEADLINE", message);
  };

  /** Tells that the node runs, and from then on where it stands whenever that changes. */
  async follow(
    url: string,
    services: NodeServices,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<void> {
    this.#o.line.send({ baton: "started", url });
    let sent = "";
    this.#services = services;
    await repeat(this.#clock, signal, async () => {
      // Waited for at first, so that the agent is not refused; later a silent store must not keep back where the node stands.
      const adopting = this.#adopt(services);
      if (this.#adoptAt === -Infinity) await adopting;
      const standing = controllerStateOf(services);
      const text = JSON.stringify(standing);
      if (text !== sent) this.#o.line.send({ baton: "standing", ...standing });
      sent = text;
      return LOOK_MS;
    });
  }

  /** The agent's calls are to be answered, here and by whichever node leads, for as long as this node lives. */
  async #adopt({ access, identity }: NodeServices): Promise<void> {
    const { agentToken } = this.#o;
    if (agentToken === undefined || this.#retired || this.#clock.monotonic() < this.#adoptAt) return;
    const by = `node-controller:${identity.name}`;
    const what = {
      name: `${identity.name}-worker`,
      permission: "operate",
      by,
      expiresInMs: TOKEN_MS,
    } as const;
    const adopt = async (): Promise<void> => {
      await access?.tokens.adopt(agentToken, what);
      this.#adoptAt = this.#clock.monotonic() + TOKEN_MS / 4;
    };
    // A store that cannot be written now is tried again.
    this.#adopting ??= adopt()
      .catch(() => {})
      .finally(() => (this.#adopting = null));
    await this.#adopting;
  }

  /** Nobody is left who could show it. If the store cannot be written now, it ends by itself. */
  async #retire(): Promise<void> {
    const { agentToken, line } = this.#o;
    this.#retired = true;
    if (agentToken !== undefined) await this.#services?.access?.tokens.release(agentToken).catch(() => {});
    line.send({ baton: "retired" });
  }
}

/** Only another node counts as the leader that this one stands by for. */
export function controllerStateOf({ leadership, health, identity }: NodeServices): ControllerState {
  const held = leadership.held();
  const current = leadership.current();
  return {
    role: roleOf(held, health.draining),
    epoch: current?.epoch ?? null,
    leader: current && !heldBy(current, identity) ? current.leader : null,
  };
}

/** How much longer than the agent's own limit the answer may take. Smaller, and a busy machine costs a term. */
const ANSWER_SLACK_MS = 2_000;

/** The line of this process to the node-controller that started it; null for a process that somebody else started. */
export function openControlChannel(settings: Settings, clock: Clock): ControlChannel | null {
  const supervisor = process.env[SUPERVISOR_VARIABLE];
  // What this process starts is not the node-controller's child.
  delete process.env[SUPERVISOR_VARIABLE];
  const agentToken = process.env[AGENT_TOKEN_VARIABLE];
  delete process.env[AGENT_TOKEN_VARIABLE];
  if (supervisor !== String(process.ppid) || !process.send) return null;
  const line: SupervisorConnection = {
    // The channel breaks only when the node-controller is gone, and then so are we.
    send: (message) => void process.send?.(message, undefined, undefined, () => {}),
    receive: (listener) => void process.on("message", listener),
  };
  const patienceMs = settings.controller.agentOffMs + ANSWER_SLACK_MS;
  return new ControlChannel({ clock }, { line, patienceMs, agentToken });
}
