/** Decides whether a connection is opened by a node of this cluster, and by which one, by its signature alone. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClusterKeys } from "./cluster-keys.ts";
import { SeenSignatures } from "./seen-signatures.ts";
import { verify } from "./signing.ts";
import type { Claims, ReceivedHeaders, SignatureFault } from "./signing.ts";

export interface AuthenticatorOptions {
  readonly keys: ClusterKeys;
  readonly self: NodeName;
  readonly clock: Clock;
  /** How far the clocks of two nodes may be apart. Larger, and more signatures have to be remembered. */
  readonly skewMs?: number;
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
  readonly #keys: ClusterKeys;
  readonly #self: NodeName;
  readonly #clock: Clock;
  readonly #skewMs: number;
  readonly #seen: SeenSignatures;
  readonly #startedAt: number;

  constructor(options: AuthenticatorOptions) {
    this.#keys = options.keys;
    this.#self = options.self;
    this.#clock = options.clock;
    this.#skewMs = options.skewMs ?? SKEW_MS;
    // A request whose sender's clock is ahead stays valid for twice the skew.
    this.#seen = new SeenSignatures(2 * this.#skewMs + 1, options.seenMax ?? SEEN_MAX);
    this.#startedAt = options.clock.monotonic();
  }

  /** A request is accepted once: the same one again is a replay. */
  check(headers: ReceivedHeaders): Verdict {
    const verified = verify(this.#keys, headers);
    if (!verified.valid) return refuse(verified.fault, verified.reason);
    const { claims, keyId, signature } = verified;
    const { from, to } = claims;
    if (to !== null && to !== this.#self) {
      return refuse(
        "wrong_receiver",
        `a request from ${from.name} was meant for ${to}, and this is ${this.#self}`,
      );
    }
    const ageMs = this.#clock.now() - claims.time;
    if (Math.abs(ageMs) > this.#skewMs) {
      const seconds = Math.round(Math.abs(ageMs) / 1_000);
      const relation = ageMs > 0 ? "behind" : "ahead of";
      return refuse(
        "clock_skew",
        `the clock of ${from.name} is ${seconds} s ${relation} that of ${this.#self}, and ${this.#skewMs / 1_000} s are allowed: check the time service of both`,
      );
    }
    // Signatures that were seen before this process started are forgotten, so none from then is accepted.
    if (ageMs > this.#clock.monotonic() - this.#startedAt + GRACE_MS) {
      return refuse(
        "before_start",
        `a request from ${from.name} was signed before ${this.#self} started; it can be sent again`,
      );
    }
    switch (this.#seen.note(signature, this.#clock.monotonic())) {
      case "seen":
        return refuse("replayed", `a request from ${from.name} was sent a second time`);
      case "full":
        return refuse(
          "too_many",
          `${this.#self} had more signed requests than it can remember; it recovers by itself`,
        );
      case "new":
        return { verdict: "accepted", claims, keyId };
    }
  }
}

function refuse(why: Refusal, reason: string): Verdict {
  return { verdict: "refused", why, reason };
}
