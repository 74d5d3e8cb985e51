import type { NodeIdentity } from "../core/node.ts";
import type { Log } from "../platform/log.ts";
import type { AssignmentId, Held, OwnershipStore } from "../store/ownership.ts";
import type { OwnedAssignments } from "./owned-assignments.ts";
import type { StoreRetry } from "./store-retry.ts";

export interface OwnershipClaimsOptions {
  readonly ownership: Pick<OwnershipStore, "own" | "read">;
  readonly owned: () => OwnedAssignments;
  readonly identity: NodeIdentity;
  readonly calls: StoreRetry;
  readonly log: Log;
}

export interface OwnershipClaim extends Held {
  /** Null when it is not known. */
  readonly jobs: number | null;
}

/** What cannot be claimed for so long goes back: another node may reach the store. */
const PATIENCE_MS = 1_000;

/** Takes ownership, a batch at a time, and hears the events of what it got. */
export class OwnershipClaims {
  readonly #o: OwnershipClaimsOptions;
  /** Claims without an answer: they may be ours, and whoever gets their messages next leaves them to us. */
  readonly #unanswered = new Set<AssignmentId>();
  #over = new AbortController();

  constructor(options: OwnershipClaimsOptions) {
    this.#o = options;
  }

  start(): void {
    this.#over = new AbortController();
  }

  stop(): void {
    this.#over.abort();
  }

  /** Under which epoch each is ours now; null for those that are not. */
  async claim(given: readonly OwnershipClaim[]): Promise<(number | null)[]> {
    const claims = given.filter((claim) => this.#readable(claim));
    if (claims.length === 0) return given.map(() => null);
    const { ownership, owned, identity } = this.#o;
    const wanted = claims.map(({ assignment, ownerEpoch }) => ({ assignment, ownerEpoch }));
    const ids = claims.map(({ assignment }) => assignment);
    let epochs: (number | null)[];
    let ours: ReadonlyMap<AssignmentId, number>;
    try {
      epochs = [...(await this.#call(() => ownership.own(wanted, identity)))];
      ours = await this.#ours(ids.filter((_, at) => epochs[at] === null));
    } catch (error) {
      for (const id of ids) this.#unanswered.add(id);
      throw error;
    }
    for (const [at, { assignment, jobs }] of claims.entries()) {
      const epoch = epochs[at] ?? null;
      const found = epoch === null ? (ours.get(assignment) ?? null) : epoch;
      if (found === null) continue;
      owned().take({ assignment, ownerEpoch: found }, epoch === null ? null : jobs);
      epochs[at] = found;
    }
    const byClaim = new Map(claims.map((claim, at) => [claim, epochs[at] ?? null]));
    return given.map((claim) => byClaim.get(claim) ?? null);
  }

  /** What nobody can read is told and dropped: it would be delivered for ever, and all others of its batch with it. */
  #readable({ assignment, ownerEpoch }: OwnershipClaim): boolean {
    const readable = Number.isSafeInteger(assignment) && Number.isSafeInteger(ownerEpoch);
    if (!readable)
      this.#o.log.error({ assignment, ownerEpoch }, "an assignment is not readable; it is dropped");
    return readable;
  }

  /** Takes those claims that had no answer and were granted all the same. */
  async recall(): Promise<void> {
    const unanswered = [...this.#unanswered];
    for (const [assignment, ownerEpoch] of await this.#ours(unanswered))
      this.#o.owned().take({ assignment, ownerEpoch }, null);
    for (const id of unanswered) this.#unanswered.delete(id);
  }

  /** What is ours although we did not get it now: a claim of which we had no answer, or a message that came twice. */
  async #ours(lost: readonly AssignmentId[]): Promise<ReadonlyMap<AssignmentId, number>> {
    if (lost.length === 0) return new Map();
    const { ownership, identity } = this.#o;
    const found = await this.#call(() => ownership.read(lost));
    return new Map(
      found
        .filter((one) => one?.owner?.incarnation === identity.incarnation)
        .map((one) => [one!.assignment, one!.ownerEpoch]),
    );
  }

  #call<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    return this.#o.calls.until(call, this.#over.signal, PATIENCE_MS);
  }
}
