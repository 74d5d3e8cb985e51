import type { Channels, Subscription } from "../channels/channels.ts";
import type { HandoffAck } from "../channels/messages.ts";
import { topics } from "../channels/names.ts";
import type { NodeIdentity } from "../core/node.ts";

export interface JobHandoffAckListenerOptions {
  readonly channels: Pick<Channels, "subscribe">;
  readonly identity: NodeIdentity;
  readonly onAck: (ack: HandoffAck) => void;
}

/** Hears from those who took over what this node gave away. */
export class JobHandoffAckListener {
  readonly #o: JobHandoffAckListenerOptions;
  #subscription: Subscription | null = null;

  constructor(options: JobHandoffAckListenerOptions) {
    this.#o = options;
  }

  start(): void {
    const { channels, identity, onAck } = this.#o;
    this.#subscription = channels.subscribe(topics.handoffAck(identity.name), ({ body }) =>
      onAck(body as HandoffAck),
    );
  }

  async stop(): Promise<void> {
    await this.#subscription?.close();
    this.#subscription = null;
  }
}
