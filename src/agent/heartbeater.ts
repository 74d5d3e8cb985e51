/**
 * Reports to the leader how many jobs this agent runs. One that runs none sends no heartbeats, because the leader knows it by its
 * waiting poll. Instead it asks another node whether that leader still leads. Either call that finds another leader moves the
 * waiting poll to it (see ClusterConnection).
 */

import type { HeartbeatRequest } from "../client/controller-calls.ts";
import { Deadline, Loop, retry } from "../platform/loop.ts";
import type { LinkContext } from "./link-messages.ts";

type Sign = Pick<HeartbeatRequest, "agent" | "capabilities" | "version">;

/** Three beats within the time after which an agent counts as stale (15 s by default). */
const BEAT_MS = 5_000;
/** With every second beat an agent that runs nothing checks whether its leader still leads. Later, and it waits longer in vain at one that hangs. */
const CHECK_BEATS = 2;
/** Also how soon a leader that hangs is noticed by an agent that waits for jobs. Shorter, and a busy one looks dead. */
const CALL_TIMEOUT_MS = 3_000;

export type Heartbeater = ReturnType<typeof heartbeater>;

export function heartbeater({ platform, leader }: LinkContext, sign: Sign, running: () => number) {
  const { clock, random } = platform;
  let beats = 0;
  /** How many jobs the leader knows of; null if the last heartbeat failed. */
  let reported: number | null = null;

  const beat = async (
    fields: Pick<HeartbeatRequest, "running" | "unanswered">,
    signal: AbortSignal,
  ): Promise<void> => {
    const request: HeartbeatRequest = { ...sign, ...fields };
    const options = { timeoutMs: CALL_TIMEOUT_MS, signal };
    await leader.postToLeader("/v1/agents/heartbeat", () => JSON.stringify(request), options);
  };

  const report = async (signal: AbortSignal): Promise<void> => {
    const jobs = running();
    const heard = beat({ running: jobs }, signal).then(() => jobs);
    reported = await heard.catch(() => null);
  };

  const loop = new Loop(clock, async (signal) => {
    // A heartbeat that fails is followed by the next one; the poller reports that there is no leader.
    if (running() !== 0 || reported !== 0) await report(signal);
    else if (beats % CHECK_BEATS === 0) {
      const found = await leader.checkLeader(CALL_TIMEOUT_MS, signal);
      if (found === "silent") await report(signal);
    }
    beats++;
    // Spread a little, so that agents that started together do not beat together for ever.
    return BEAT_MS * (0.9 + 0.2 * random.chance());
  });

  return {
    start: () => loop.start(),
    stop: () => loop.stop(),

    /** The last heartbeat: which answers are not waited for. Tries for so long. */
    async finish(unanswered: readonly string[], withinMs: number): Promise<void> {
      await loop.stop();
      if (unanswered.length === 0) return;
      const backoff = leader.backoff();
      using limit = new Deadline(clock, withinMs);
      const last = () => beat({ running: 0, unanswered: [...unanswered] }, limit.signal);
      await retry(clock, last, () => backoff.next(), limit.signal).catch(() => {}); // the time is over
    },
  };
}
