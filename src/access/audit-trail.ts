/**
 * The audit trail, for the journal. Changes by people have an entry each; frequent calls of programs and refused calls are
 * counted, with one entry per minute for each caller and operation, or address.
 */

import type { JournalService } from "../observe/journal/journal.ts";
import { type Principal, principalText } from "../core/access/permissions.ts";
import type { Platform } from "../platform/platform.ts";

export interface Change {
  readonly operation: string;
  readonly principal: Principal | null;
  /** Of the path and the query, and what else is worth knowing; never a payload. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly status: number;
  readonly address: string;
  readonly requestId: string;
  readonly servedBy?: string;
}

interface Count {
  readonly actor: string | null;
  readonly subject: string;
  readonly detail: Record<string, unknown> & { count: number };
}

const MINUTE_MS = 60_000;
/** Callers and addresses in one minute; the rest are counted together. */
const COUNTS_MAX = 1_000;

export type AuditTrail = ReturnType<typeof auditTrail>;

export function auditTrail({ clock }: Pick<Platform, "clock">, journal: Pick<JournalService, "note">) {
  let counts = new Map<string, Count>();
  let last: {
    readonly principal: Principal | null;
    readonly operation: string;
    readonly count: Count;
  } | null = null;
  let since = 0;
  let callOff: (() => void) | null = null;

  function flush(): void {
    callOff?.();
    callOff = null;
    const counted = counts;
    counts = new Map();
    last = null;
    const seconds = Math.max(1, Math.round((clock.now() - since) / 1_000));
    for (const { actor, subject, detail } of counted.values())
      journal.note({ kind: "audit", actor, subject, detail: { ...detail, seconds } });
  }

  function countOf(key: string, make: () => Count): Count {
    if (callOff === null) {
      since = clock.now();
      callOff = clock.after(MINUTE_MS, flush);
    }
    const known = counts.get(key);
    if (known) return known;
    const isFull = counts.size >= COUNTS_MAX;
    const count = isFull ? (counts.get("") ?? others()) : make();
    counts.set(isFull ? "" : key, count);
    return count;
  }

  return {
    flush,

    changed({ operation, principal, params, status, address, requestId, servedBy }: Change): void {
      journal.note({
        kind: "audit",
        actor: principal && principalText(principal),
        subject: subjectOf(params) ?? operation,
        detail: {
          operation,
          params,
          status,
          address,
          request_id: requestId,
          ...(servedBy !== undefined && { served_by: servedBy }),
        },
      });
    },

    counted({ operation, principal, status }: Pick<Change, "operation" | "principal" | "status">): void {
      // Most come from the one who called before, and a text made for each of them would cost more than counting.
      if (last?.principal !== principal || last.operation !== operation) {
        const actor = principal && principalText(principal);
        const count = countOf(`${actor} ${operation}`, () => ({
          actor,
          subject: operation,
          detail: { operation, count: 0, refused: 0 },
        }));
        last = { principal, operation, count };
      }
      const { detail } = last.count;
      detail.count++;
      if (status >= 400) detail["refused"] = (detail["refused"] as number) + 1;
    },

    refused(address: string, code: string, actor: string | null = null): void {
      countOf(`${address} ${code} ${actor}`, () => ({
        actor,
        subject: address,
        detail: { operation: "refused", code, address, count: 0 },
      })).detail.count++;
    },
  };
}

function others(): Count {
  return { actor: null, subject: "others", detail: { operation: "others", count: 0, refused: 0 } };
}

function subjectOf(params: Readonly<Record<string, unknown>>): string | null {
  for (const name of ["id", "name", "user", "task", "agent_name"]) {
    const value = params[name];
    if (typeof value === "string") return value;
  }
  return null;
}
