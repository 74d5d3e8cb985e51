/**
 * The key that names the leader: a hash with the holder, its epoch and the end of its lease by the clock of Redis. It
 * expires with the lease. A second key has the highest epoch that this Redis granted; Redis may lose it, so the candidate
 * passes the number that the store knows.
 *
 * Every script compares holder and epoch, and the lease with the server's own time: a renewal that was delayed in a
 * stopped server finds its lease expired, and a renewal that arrives after its sender's deadline extends nothing.
 */

import { BatonError } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import { redisScript } from "../../platform/drivers/redis/connection.ts";
import type { GrantRequest } from "../admitted-lock.ts";
import type { Tenure } from "../coordination.ts";
import { subjectOf } from "../server-locks.ts";
import { NOW, type ControlSession } from "./control-session.ts";

/** The term that is in the way of a grant. */
export interface LeaseRecord {
  readonly epoch: number;
  readonly leftMs: number;
  /** The channel of the holder's incarnation; empty when its end cannot be seen. */
  readonly channel: string;
}

const LATE = -1;
const REFUSED = 0;

/** ARGV[2] is the sender's deadline by the clock of Redis. */
const IN_TIME = `${NOW}
if ARGV[2] ~= '' and at > tonumber(ARGV[2]) then return { ${LATE}, at } end
`;
const HELD = `
local held = redis.call('HMGET', KEYS[1], 'leader', 'incarnation', 'epoch', 'until', 'channel', 'acquired')
local valid = held[3] and tonumber(held[4]) > at
`;
const OURS = "held[1] == ARGV[3] and held[2] == ARGV[4]";

const GRANT = redisScript(
  "leader-grant",
  `${IN_TIME}${HELD}
if valid and not (${OURS}) then
  local gone = ARGV[8] ~= '' and held[5] == ARGV[8] and redis.call('PUBSUB', 'NUMSUB', held[5])[2] == 0
  if not gone then return { ${REFUSED}, at, tonumber(held[3]), tonumber(held[4]) - at, held[5] } end
end
local known = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(held[3] or '0'), tonumber(ARGV[6]))
local epoch = string.format('%d', known + 1)
local now = string.format('%d', at)
redis.call('SET', KEYS[2], epoch)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'leader', ARGV[3], 'incarnation', ARGV[4], 'epoch', epoch, 'acquired', now,
  'until', string.format('%d', at + tonumber(ARGV[5])), 'channel', ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return { 1, at, known + 1 }`,
);
const RENEW = redisScript(
  "leader-renew",
  `${IN_TIME}${HELD}
if not (valid and ${OURS} and held[3] == ARGV[5]) then return { ${REFUSED}, at } end
redis.call('HSET', KEYS[1], 'until', string.format('%d', at + tonumber(ARGV[6])), 'channel', ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return { 1, at }`,
);
const RELEASE = redisScript(
  "leader-release",
  `${NOW}${HELD}
if not (valid and ${OURS} and held[3] == ARGV[5]) then return { ${REFUSED}, at } end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[6], ARGV[7])
return { 1, at }`,
);
const TENURE = redisScript(
  "leader-tenure",
  `${NOW}${HELD}
if not valid then return { ${REFUSED}, at } end
return { 1, at, held[1], held[2], tonumber(held[3]), tonumber(held[6]), tonumber(held[4]) }`,
);

export class LeaderRecord {
  readonly #control: ControlSession;
  readonly #role: LeaderRole;
  readonly #key: string;

  constructor(control: ControlSession, role: LeaderRole) {
    this.#control = control;
    this.#role = role;
    // The scheduler is the leader of the cluster; the others have their role behind it.
    this.#key = role === "scheduler" ? control.key("leader") : control.key("leader", role);
  }

  /** `gone`: the channel of an incarnation that was seen to end: its term may be taken, if the channel is still empty. */
  async grant(
    { candidate, ttlMs, floor }: GrantRequest,
    gone: string,
    deadlineMs: number,
  ): Promise<{ readonly term: Term } | LeaseRecord> {
    const { name: leader, incarnation } = candidate;
    const control = this.#control;
    const [outcome, , epoch, leftMs, channel] = await control.timed<
      readonly [outcome: number, at: number, epoch: number, leftMs: number, channel: string]
    >(
      GRANT,
      [this.#key, `${this.#key}:epoch`],
      [control.latestBy(deadlineMs), leader, incarnation, ttlMs, floor, control.ownChannel, gone],
      { deadlineMs },
    );
    refuseLate(outcome, deadlineMs);
    if (outcome === REFUSED) return { epoch, leftMs, channel };
    return { term: { role: this.#role, leader, incarnation, epoch } };
  }

  async renew(term: Term, ttlMs: number, deadlineMs: number): Promise<boolean> {
    const control = this.#control;
    const [outcome] = await control.timed(
      RENEW,
      [this.#key],
      [control.latestBy(deadlineMs), ...holder(term), ttlMs, control.ownChannel],
      { deadlineMs },
    );
    refuseLate(outcome, deadlineMs);
    return outcome !== REFUSED;
  }

  async release(term: Term): Promise<void> {
    const control = this.#control;
    const args = ["", ...holder(term), control.notifications, subjectOf(this.#role)];
    await control.timed(RELEASE, [this.#key], args);
  }

  async tenure(): Promise<Tenure | null> {
    const [outcome, , leader, incarnation, epoch, acquiredAt, leaseUntil] = await this.#control.timed<
      readonly [number, number, NodeName, string, number, number, number]
    >(TENURE, [this.#key], []);
    if (outcome === REFUSED) return null;
    return { role: this.#role, leader, incarnation, epoch, acquiredAt, leaseUntil };
  }
}

function holder({ leader, incarnation, epoch }: Term): [NodeName, string, number] {
  return [leader, incarnation, epoch];
}

function refuseLate(outcome: number, deadlineMs: number): void {
  if (outcome !== LATE) return;
  throw new BatonError(
    "DEADLINE",
    `Redis was reached later than ${deadlineMs} ms after it was asked; nothing was done there`,
  );
}
