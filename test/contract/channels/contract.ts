/** The contract of the channels interface. Every backend runs it; `broken.test.ts` shows that it can fail. */

import type { Channels } from "../../../src/channels/channels.ts";
import { prove, type Promises, type Skips, type WithWorld } from "../promises.ts";
import { lifePromises } from "./life.ts";
import { queuePromises } from "./queues.ts";
import { topicPromises } from "./topics.ts";
import type { ChannelsWorld } from "./world.ts";

/** Gives the started channels of two nodes on one backend; they may be one and the same where there is one node. */
export type OpenChannels = () => Promise<{ here: Channels; there: Channels }>;

export const channelsPromises: Promises<ChannelsWorld> = {
  ...queuePromises,
  ...topicPromises,
  ...lifePromises,
};

export function channelsContract(
  name: string,
  open: OpenChannels,
  { skip = {} }: { skip?: Skips } = {},
): void {
  prove(`the ${name} channels`, channelsPromises, withChannels(open), skip);
}

export function withChannels(open: OpenChannels): WithWorld<ChannelsWorld> {
  return async (proof) => {
    const { here, there } = await open();
    try {
      await proof({ here, there });
    } finally {
      await Promise.all([here.stop(), there.stop()]);
    }
  };
}
