/** Events among peers, which share no topic: each node is called separately, one after the other. */

import type { EventMessage, EventWire } from "./event-wire.ts";
import { eventMessage } from "./event-wire.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import type { Outcome, PeerReply, PeerRequest, ReceivedRequest } from "../../transport/transport.ts";

export const EVENTS_PATH = "/peer/events";

export interface PeerEventWireOptions {
  readonly self: NodeName;
  readonly nodes: () => readonly NodeInfo[];
  readonly call: (node: NodeInfo, request: PeerRequest, deadlineMs: number) => Promise<Outcome>;
}

/** A node that takes longer misses what is sent meanwhile. */
const DEADLINE_MS = 2_000;
/** Messages that one slow node may be behind with. */
const UNSENT_MAX = 500;

interface Line {
  unsent: EventMessage[];
  sending: boolean;
}

export class PeerEventWire implements EventWire {
  readonly #o: PeerEventWireOptions;
  readonly #lines = new Map<NodeName, Line>();
  #handler: ((message: EventMessage) => void) | null = null;

  constructor(options: PeerEventWireOptions) {
    this.#o = options;
  }

  /** Waits for nobody: each node hears as fast as it can. */
  async send(messages: readonly EventMessage[]): Promise<void> {
    const { self, nodes } = this.#o;
    const others = nodes().filter(({ name, alive, url }) => name !== self && alive && url !== null);
    const names = new Set(others.map(({ name }) => name));
    for (const name of this.#lines.keys()) if (!names.has(name)) this.#lines.delete(name);
    for (const { name } of others) {
      const line = this.#lines.get(name) ?? { unsent: [], sending: false };
      this.#lines.set(name, line);
      line.unsent = line.unsent.length > UNSENT_MAX ? [...messages] : [...line.unsent, ...messages];
      if (!line.sending) void this.#work(name, line);
    }
  }

  hear(handler: (message: EventMessage) => void): { close(): Promise<void> } {
    this.#handler = handler;
    return {
      close: async () => {
        this.#handler = null;
        this.#lines.clear();
      },
    };
  }

  /** A peer says something. */
  async handle({ body }: ReceivedRequest): Promise<PeerReply> {
    const messages = parse(body);
    if (messages === null) return { status: 400 };
    for (const message of messages.map(eventMessage)) if (message) this.#handler?.(message);
    return { status: 204 };
  }

  async #work(name: NodeName, line: Line): Promise<void> {
    line.sending = true;
    while (line.unsent.length > 0 && this.#lines.get(name) === line) {
      const body = JSON.stringify(line.unsent);
      line.unsent = [];
      const node = this.#o.nodes().find((each) => each.name === name);
      if (!node?.alive || node.url === null) break;
      const headers = { "content-type": "application/json" };
      // What does not arrive is a hole in the numbers.
      await this.#o.call(node, { method: "POST", path: EVENTS_PATH, headers, body }, DEADLINE_MS);
    }
    line.sending = false;
  }
}

function parse(body: string): unknown[] | null {
  try {
    const messages: unknown = JSON.parse(body);
    return Array.isArray(messages) ? messages : null;
  } catch {
    return null;
  }
}
