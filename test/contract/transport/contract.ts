/** The contract of the transport port. Every keeper runs it; `broken.test.ts` shows that it bites. */

import type { OpenTransport, TransportWorld } from "../../support/peer-world.ts";
import { inWorldOf, prove, type Promises, type Skips } from "../promises.ts";
import { deadlinePromises } from "./deadline.ts";
import { outcomePromises } from "./outcome.ts";
import { replyPromises } from "./reply.ts";
import { streamPromises } from "./stream.ts";

export const transportPromises: Promises<TransportWorld> = {
  ...replyPromises,
  ...outcomePromises,
  ...deadlinePromises,
  ...streamPromises,
};

export function transportContract(
  name: string,
  open: OpenTransport,
  { skip = {} }: { skip?: Skips } = {},
): void {
  prove(`the ${name} transport`, transportPromises, inWorldOf(open), skip);
}
