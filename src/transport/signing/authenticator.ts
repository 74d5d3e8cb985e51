/** Decides whether a call comes from a node of this cluster, and from which one, by its signature alone. */

import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClusterKeys } from "./cluster-keys.ts";
import { SeenSignatures } from "./seen-signatures.ts";
import { HEADER, verify } from "./signing.ts";
import type { Claims, ReceivedHeaders, Signed, SignatureFault } from "./signing.ts";
import type { PeerHandler, PeerReply } from "../transport.ts";

export interface AuthenticatorOptions {
  readonly keys: ClusterKeys;
  readonly self: NodeName;
  readonly clock: Clock;
  /** How far the clocks of two nodes may be apart. Larger, and more signatures have to be remembered. */
  readonly skewMs?: number;
  /** Signatures remembered in each of two windows of twice the skew, about 40 bytes each. Calls beyond are refused. */
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
  | {
      readonly verdict: "accepted";
      readonly from: NodeIdentity;
      readonly claims: Claims;
      readonly keyId: string;
      /** Those that the signature covers, deadline and hop among them; any other may have been added on the way. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly verdict: "refused"; readonly why: Refusal; readonly reason: string }
  /** Not signed at all: an ordinary caller, with the rights of one. */
  | { readonly verdict: "outside" };

const SKEW_MS = 30_000;
/** 8,000 calls a second for a minute; calls over the mesh do not count. */
const SEEN_MAX = 500_000;
/** Calls to a node whose name the caller may not know yet. What they can do has to be harmless at any node. */
const UNNAMED: ReadonlySet<string> = new Set(["/peer/join", "/peer/mesh"]);

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
    // A call whose sender's clock is ahead stays good for the skew twice.
    this.#seen = new SeenSignatures(2 * this.#skewMs + 1, options.seenMax ?? SEEN_MAX);
    this.#startedAt = options.clock.monotonic();
  }

  /** An accepted call is accepted once: asking again about the same one finds it replayed. */
  check(request: Signed & { readonly headers: ReceivedHeaders }): Verdict {
    const verified = verify(this.#keys, request);
    if (!verified.valid) {
      const { fault, reason } = verified;
      return fault === "missing" ? { verdict: "outside" } : refuse(fault, reason);
    }
    const { claims, keyId, headers, signature } = verified;
    const { from, to } = claims;
    if (to === null ? !UNNAMED.has(pathOf(request)) : to !== this.#self) {
      return refuse(
        "wrong_receiver",
        `a call from ${from.name} was meant for ${to ?? "no node"}, and this is ${this.#self}`,
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
    // What was seen before this process started is forgotten, so nothing from then is let in. A whole second of grace, because the
    // clocks of good neighbours differ by some milliseconds and the first calls to a new node matter.
    if (ageMs > this.#clock.monotonic() - this.#startedAt + GRACE_MS) {
      return refuse(
        "before_start",
        `a call from ${from.name} was signed before ${this.#self} started; it can be sent again`,
      );
    }
    switch (this.#seen.note(signature, this.#clock.monotonic())) {
      case "seen":
        return refuse("replayed", `a call from ${from.name} was sent a second time`);
      case "full":
        return refuse(
          "too_many",
          `${this.#self} had more signed calls than it can remember; it recovers by itself`,
        );
      case "new":
        return { verdict: "accepted", from, claims, keyId, headers: told(headers, claims) };
    }
  }
}

const GRACE_MS = 1_000;

function told(
  covered: Readonly<Record<string, string>>,
  { deadlineMs, hop }: Claims,
): Record<string, string> {
  const headers: Record<string, string> = { ...covered, [HEADER.hop]: String(hop) };
  if (deadlineMs !== null) headers[HEADER.deadline] = String(deadlineMs);
  return headers;
}

function refuse(why: Refusal, reason: string): Verdict {
  return { verdict: "refused", why, reason };
}

function pathOf({ path }: Signed): string {
  return path.split("?", 1)[0]!;
}

/** Lets only signed calls pass to a handler, which then sees the sender's proven name and no header that could be forged. */
export function authenticated(authenticator: Authenticator, handler: PeerHandler): PeerHandler {
  return async (request) => {
    const verdict = authenticator.check(request);
    if (verdict.verdict !== "accepted") return unauthenticated(verdict);
    return handler({ ...request, from: verdict.from.name, headers: verdict.headers });
  };
}

export function unauthenticated(verdict: Exclude<Verdict, { verdict: "accepted" }>): PeerReply {
  const [why, message] =
    verdict.verdict === "refused"
      ? [verdict.why, verdict.reason]
      : ["missing", "only nodes of this cluster may call this, and the call is not signed"];
  return {
    status: 401,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify({ error: "UNAUTHENTICATED", message, why }),
  };
}
