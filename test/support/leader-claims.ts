/** Who said of itself that it leads, and when: asked of every node again and again, for as long as a test runs. */

import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { roleOf } from "./cluster.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";

/** A stretch of time in which a node certainly believed that it leads. */
interface Claim {
  readonly name: string;
  readonly epoch: number;
  readonly from: number;
  until: number;
}

const LOOK_MS = 15;

export class LeaderClaims {
  readonly #nodes: () => ReadonlyMap<string, { readonly url: string }>;
  readonly #claims: Claim[] = [];
  readonly #over = new AbortController();
  readonly #looking = new Map<string, Promise<void>>();
  readonly #loop: Promise<void>;

  constructor(t: Scope, nodes: () => ReadonlyMap<string, { readonly url: string }>) {
    this.#nodes = nodes;
    this.#loop = this.#run();
    atEnd(t, () => this.#end());
  }

  /** Who led under which epoch, as far as it was seen. */
  get terms(): ReadonlyMap<number, string> {
    return new Map(this.#claims.map(({ epoch, name }) => [epoch, name]));
  }

  /** No epoch had two leaders, and no two nodes believed at the same time that they lead. */
  assertOneAtATime(): void {
    for (const [n, a] of this.#claims.entries()) {
      for (const b of this.#claims.slice(0, n).filter(({ name }) => name !== a.name)) {
        assert.notEqual(a.epoch, b.epoch, `${a.name} and ${b.name} both led under epoch ${a.epoch}`);
        const bothMs = Math.min(a.until, b.until) - Math.max(a.from, b.from);
        assert.ok(
          bothMs <= 0,
          `${a.name} and ${b.name} both led for ${bothMs} ms: ${JSON.stringify([a, b])}`,
        );
      }
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      for (const [name, node] of this.#nodes()) {
        if (this.#looking.has(name)) continue;
        this.#looking.set(
          name,
          this.#look(name, node).finally(() => this.#looking.delete(name)),
        );
      }
      await systemClock.sleep(LOOK_MS, signal);
    }
  }

  /** What it said first and what it says now bound the time in between, however late the answers came. */
  async #look(name: string, node: { readonly url: string }): Promise<void> {
    const askedAt = systemClock.monotonic();
    const role = await roleOf(node);
    if (role?.role !== "LEADER") return;
    const epoch = role.leader_epoch!;
    const claim = this.#claims.findLast((one) => one.name === name);
    if (claim?.epoch === epoch) claim.until = Math.max(claim.until, askedAt);
    else this.#claims.push({ name, epoch, from: systemClock.monotonic(), until: askedAt });
  }

  async #end(): Promise<void> {
    this.#over.abort();
    await this.#loop;
    await Promise.all(this.#looking.values());
  }
}
