import type { Subscription } from "../../channels/channels.ts";
import type { HandoffAck } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import type { JobHandoffPublisher } from "./job-handoff-publisher.ts";
import type { OwnerOptions } from "./owner-options.ts";

export interface JobHandoffAckListenerOptions extends Pick<OwnerOptions, "channels" | "identity"> {
  readonly publisher: JobHandoffPublisher;
}

/** Receives the acknowledgements of nodes that took over what this node gave away. */
export class JobHandoffAckListener {
  readonly #o: JobHandoffAckListenerOptions;
  #subscription: Subscription | null = null;

  constructor(options: JobHandoffAckListenerOptions) {
    this.#o = options;
  }

  start(): void {
    const { channels, identity, publisher } = this.#o;
    this.#subscription = channels.subscribe(topics.handoffAck(identity.name), ({ body }) =>
      publisher.acknowledged(body as HandoffAck),
    );
  }

  async stop(): Promise<void> {
    await this.#subscription?.close();
    this.#subscription = null;
  }
}
