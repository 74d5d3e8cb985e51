/** Classifies the errors of etcd calls: refused permanently, to be tried at another member, or outcome unknown. */

import { BatonError } from "../../core/errors.ts";

export const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** Etcd has answered, and the answer is no. */
export class EtcdRefusal extends Error {
  readonly grpc: number;

  constructor(grpc: number, message: string) {
    super(message);
    this.name = "EtcdRefusal";
    this.grpc = grpc;
  }

  /** Another member may do better: this one has lost the others, or waits for them. */
  get elsewhere(): boolean {
    return this.grpc === GRPC.unavailable || this.grpc === GRPC.deadlineExceeded;
  }

  /** A token that has run out, or was made before users or roles were changed. */
  get tokenIsOld(): boolean {
    return (
      this.grpc === GRPC.unauthenticated ||
      (this.grpc === GRPC.invalidArgument && /auth store is old|user name is empty/.test(this.message))
    );
  }
}

export function unavailable(reason: string, outcome: "not_done" | "unknown"): BatonError {
  return new BatonError("STORE_UNAVAILABLE", `etcd is not available: ${reason}`, { outcome });
}

/** For the caller. An error that is returned unchanged is a bug in Baton. */
export function translated(refusal: EtcdRefusal): Error {
  const { grpc, message } = refusal;
  if (
    refusal.tokenIsOld ||
    grpc === GRPC.permissionDenied ||
    (grpc === GRPC.invalidArgument && /authentication failed/.test(message))
  ) {
    return new BatonError(
      "BAD_CONFIG",
      `etcd refused: ${message}; check user and password in etcd.url, and that the user may read and write all keys below etcd.prefix`,
      { field: "etcd" },
      { cause: refusal },
    );
  }
  if (grpc === GRPC.resourceExhausted)
    return unavailable(`${message}; compact and defragment it`, "not_done");
  return refusal.elsewhere ? unavailable(message, "unknown") : refusal;
}

/** What came is no answer of etcd's to that: null. */
export function refusalIn(body: unknown): EtcdRefusal | null {
  if (typeof body !== "object" || body === null || !("error" in body)) return null;
  const { error, code, message } = body as { error: unknown; code?: unknown; message?: unknown };
  // In a stream the error is an object.
  if (typeof error === "object" && error !== null) {
    const inner = error as { grpc_code?: unknown; code?: unknown; message?: unknown };
    return new EtcdRefusal(Number(inner.grpc_code ?? inner.code ?? 2), String(inner.message ?? "unknown"));
  }
  return new EtcdRefusal(Number(code ?? 2), String(message ?? error));
}
