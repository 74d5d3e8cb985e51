/** Decides by its signature which node of this cluster opens a connection. Each signature is accepted once. */

import type { Platform } from "../../platform/platform.ts";
import { Recent } from "../../platform/recent.ts";
import {
  verify,
  type ClusterKeys,
  type Claims,
  type ReceivedHeaders,
  type SignatureFault,
} from "./signing.ts";

export interface AuthenticatorLimits {
  /** How far the clocks of two nodes may be apart. Larger, and more signatures have to be remembered. */
  readonly skewMs?: number | undefined;
  /** Signatures remembered in each of two windows of twice the skew, about 40 bytes each. Requests beyond are refused. */
  readonly seenMax?: number;
}

export type Refusal =
  | SignatureFault
  | "wrong_receiver"
  | "clock_skew"
  | "before_start"
  | "replayed"
  | "too_many";

export type Verdict =
  | { readonly verdict: "accepted"; readonly claims: Claims; readonly keyId: string }
  | { readonly verdict: "refused"; readonly why: Refusal; readonly reason: string };

const SKEW_MS = 30_000;
/** 1,600 new connections a second for a minute. */
const SEEN_MAX = 100_000;
/** The clocks of good neighbours differ by some milliseconds, and the first requests to a new node matter. */
const GRACE_MS = 1_000;

export class Authenticator {
  readonly #platform: Pick<Platform, "clock" | "identity">;
  readonly #keys: ClusterKeys;
  readonly #skewMs: number;
  readonly #seenMax: number;
  /** On a monotonic clock: a wall clock that is set must not make it forget. */
  readonly #seen: Recent<number>;
  readonly #startedAt: number;

  constructor(
    platform: Pick<Platform, "clock" | "identity">,
    keys: ClusterKeys,
    { skewMs = SKEW_MS, seenMax = SEEN_MAX }: AuthenticatorLimits = {},
  ) {
    this.#platform = platform;
    this.#keys = keys;
    this.#skewMs = skewMs;
    // A request whose sender's clock is ahead stays valid for twice the skew.
    this.#seenMax = seenMax;
    this.#seen = new Recent(platform.clock, 2 * skewMs + 1);
    this.#startedAt = platform.clock.monotonic();
  }

  check(headers: ReceivedHeaders): Verdict {
    const verified = verify(this.#keys, headers);
    if (!verified.valid) return refuse(verified.fault, verified.reason);
    const { claims, keyId, signature } = verified;
    const { from, to } = claims;
    const { clock, identity } = this.#platform;
    const self = identity.name;
    if (to !== null && to !== self) {
      return refuse("wrong_receiver", `a request from ${from.name} was meant for ${to}, and this is ${self}`);
    }
    const ageMs = clock.now() - claims.time;
    if (Math.abs(ageMs) > this.#skewMs) {
      const seconds = Math.round(Math.abs(ageMs) / 1_000);
      const relation = ageMs > 0 ? "behind" : "ahead of";
      return refuse(
        "clock_skew",
        `the clock of ${from.name} is ${seconds} s ${relation} that of ${self}, and ${this.#skewMs / 1_000} s are allowed: check the time service of both`,
      );
    }
    // Signatures that were seen before this process started are forgotten, so none from then is accepted.
    if (ageMs > clock.monotonic() - this.#startedAt + GRACE_MS) {
      return refuse(
        "before_start",
        `a request from ${from.name} was signed before ${self} started; it can be sent again`,
      );
    }
    // 48 bits of a MAC, which no sender can choose: a number is a quarter of the memory of a text, and that one call in
    // a hundred million is refused by chance is what its sender's retry is for.
    const mark = signature.readUIntBE(0, 6);
    if (this.#seen.has(mark)) return refuse("replayed", `a request from ${from.name} was sent a second time`);
    // Forgetting a signature inside its window would allow a replay.
    if (this.#seen.added() >= this.#seenMax) {
      return refuse(
        "too_many",
        `${self} had more signed requests than it can remember; it recovers by itself`,
      );
    }
    this.#seen.add(mark);
    return { verdict: "accepted", claims, keyId };
  }
}

function refuse(why: Refusal, reason: string): Verdict {
  return { verdict: "refused", why, reason };
}
