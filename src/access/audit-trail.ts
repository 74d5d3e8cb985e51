/**
 * The audit trail, for the journal. Changes by people have an entry each; frequent calls of programs and refused calls are
 * counted, with one entry per minute for each caller and operation, or address.
 */

import type { JournalService } from "../observe/journal/journal.ts";
import { type Principal, principalText } from "../core/access/permissions.ts";
import type { Clock } from "../platform/clock.ts";
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

export class AuditTrail {
  readonly #clock: Clock;
  readonly #journal: Pick<JournalService, "note">;
  #counts = new Map<string, Count>();
  #last: { readonly principal: Principal | null; readonly operation: string; readonly count: Count } | null =
    null;
  #since = 0;
  #callOff: (() => void) | null = null;

  constructor({ clock }: Pick<Platform, "clock">, journal: Pick<JournalService, "note">) {
    this.#clock = clock;
    this.#journal = journal;
  }

  changed({ operation, principal, params, status, address, requestId, servedBy }: Change): void {
    this.#journal.note({
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
  }

  counted({ operation, principal, status }: Pick<Change, "operation" | "principal" | "status">): void {
    let last = this.#last;
    // Most come from the one who called before, and a text made for each of them would cost more than counting.
    if (last?.principal !== principal || last.operation !== operation) {
      const actor = principal && principalText(principal);
      const count = this.#count(`${actor} ${operation}`, () => ({
        actor,
        subject: operation,
        detail: { operation, count: 0, refused: 0 },
      }));
      last = this.#last = { principal, operation, count };
    }
    const { detail } = last.count;
    detail.count++;
    if (status >= 400) detail["refused"] = (detail["refused"] as number) + 1;
  }

  refused(address: string, code: string, actor: string | null = null): void {
    this.#count(`${address} ${code} ${actor}`, () => ({
      actor,
      subject: address,
      detail: { operation: "refused", code, address, count: 0 },
    })).detail.count++;
  }

  flush(): void {
    this.#callOff?.();
    this.#callOff = null;
    const counts = this.#counts;
    this.#counts = new Map();
    this.#last = null;
    const seconds = Math.max(1, Math.round((this.#clock.now() - this.#since) / 1_000));
    for (const { actor, subject, detail } of counts.values())
      this.#journal.note({ kind: "audit", actor, subject, detail: { ...detail, seconds } });
  }

  #count(key: string, make: () => Count): Count {
    if (this.#callOff === null) {
      this.#since = this.#clock.now();
      this.#callOff = this.#clock.after(MINUTE_MS, () => this.flush());
    }
    const known = this.#counts.get(key);
    if (known) return known;
    const full = this.#counts.size >= COUNTS_MAX;
    const made = full
      ? (this.#counts.get("") ?? {
          actor: null,
          subject: "others",
          detail: { operation: "others", count: 0, refused: 0 },
        })
      : make();
    this.#counts.set(full ? "" : key, made);
    return made;
  }
}

function subjectOf(params: Readonly<Record<string, unknown>>): string | null {
  for (const name of ["id", "name", "user", "task", "agent_name"]) {
    const value = params[name];
    if (typeof value === "string") return value;
  }
  return null;
}
