/** Clusters in memory that nodes join, on the real clock with short times, and whoever leads them. */

import type { PeerSource } from "../../src/peers/bully/peer-list.ts";
import { Elector } from "../../src/leadership/elector.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { seededRandom } from "./seeded-random.ts";
import { PeerWorld, QUICK, urlOf, type Peer, type PeerOptions } from "./lock-peers.ts";
import { ROLE } from "./lock-world.ts";
import { eventually } from "./wait.ts";

/** A leader that a busy machine does not let renew in time is another one. */
export const LASTING = { leaseMs: 10_000, renewMs: 50, marginMs: 1_000, retryMs: 25 };
const SHORT = { leaseMs: 300, renewMs: 50, marginMs: 75, retryMs: 25 };
export const FOUNDS: PeerSource = { kind: "join", addresses: [] };

export interface Member extends Peer {
  readonly elector: Elector;
}

export class PeerTown implements AsyncDisposable {
  readonly world: PeerWorld;
  readonly members = new Map<string, Member>();
  readonly #electors: Elector[] = [];

  readonly #election: typeof SHORT;

  constructor(settings = {}, election = SHORT) {
    this.#election = election;
    this.world = new PeerWorld(systemClock, [], { ...QUICK, ...settings });
  }

  async start(name: string, source: PeerSource, options: PeerOptions = {}): Promise<Member> {
    const peer = await this.world.start(name, { source, ...options });
    const elector = new Elector({
      lock: peer.coordination.lock(ROLE),
      identity: peer.identity,
      role: ROLE,
      clock: systemClock,
      random: seededRandom(this.#electors.length),
      settings: this.#election,
    });
    await elector.start();
    this.#electors.push(elector);
    const member = { ...peer, elector };
    this.members.set(name, member);
    return member;
  }

  join(name: string, through: string, options: PeerOptions = {}): Promise<Member> {
    return this.start(name, { kind: "join", addresses: [urlOf(through)] }, options);
  }

  /** These are the members, for all of them, and they follow one leader. */
  async agreed(...names: readonly string[]): Promise<Member> {
    await eventually(`${names.join()} agree`, () => {
      const members = names.map((name) => this.members.get(name)!);
      const leader = members[0]!.coordination.leader();
      return (
        leader !== null &&
        names.includes(leader.leader) &&
        members.every(
          ({ coordination }) =>
            coordination.peers.names().join() === [...names].sort().join() &&
            coordination.leader()?.epoch === leader.epoch &&
            coordination.notes().length === 0,
        )
      );
    });
    return this.members.get(this.members.get(names[0]!)!.coordination.leader()!.leader)!;
  }

  async kill(name: string): Promise<void> {
    await this.members.get(name)!.kill();
  }

  setNumber(name: string): string {
    const { set } = JSON.parse(this.world.disk(name).text!) as { set: { epoch: number; count: number } };
    return `${set.epoch}.${set.count}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#electors.map((elector) => elector.stop()));
    await this.world[Symbol.asyncDispose]();
  }
}
