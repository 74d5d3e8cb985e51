/** Formats entries of the journal as text. */

import type { JournalEntryBody } from "../../api/bodies/journal-body.ts";
import type { Style } from "../terminal/terminal.ts";

type Detail = Readonly<Record<string, unknown>>;

/** What happened, in one sentence without its time. */
export function journalText({ kind, node, actor, subject, detail }: JournalEntryBody): string {
  const say = (name: string): string => text(detail[name]);
  const why = detail["reason"] ? `: ${say("reason")}` : "";
  switch (kind) {
    case "term.started":
      return `${say("leader") || node} leads${role(subject)} under epoch ${say("epoch")}`;
    case "term.ended":
      return `${say("leader") || node} leads${role(subject)} no more (epoch ${say("epoch")})${why}`;
    case "write.refused":
      return `${refusal(detail)} of ${node} refused: ${say("what")}${epochs(detail)}${subject === null ? "" : `, ${subject}`}`;
    case "node.joined":
    case "node.left":
    case "node.dead":
    case "node.draining":
    case "node.drained":
    case "node.resumed":
      return `${subject ?? node} ${NODE_WORDS[kind]}${why}`;
    case "handoff":
      return `${jobs(detail)}${say("from") || "?"} → ${say("to") || "nobody"}${why}`;
    case "audit":
      return `${actor ?? "somebody"} ${say("operation")}${about(subject, detail)}${times(detail)}${refused(detail)}`;
    default:
      return [kind, subject ?? "", JSON.stringify(detail)].join(" ");
  }
}

const NODE_WORDS = {
  "node.joined": "joined",
  "node.left": "left",
  "node.dead": "is dead",
  "node.draining": "drains",
  "node.drained": "is drained",
  "node.resumed": "works again",
} as const;

export function journalStyle(kind: string): Style | null {
  if (kind === "node.dead" || kind === "write.refused") return "red";
  if (kind === "term.started" || kind === "node.joined" || kind === "node.resumed") return "green";
  return kind === "term.ended" || kind === "node.draining" ? "yellow" : null;
}

/** The scheduler's is the leadership that people mean. */
function role(name: string | null): string {
  return name === null || name === "scheduler" ? "" : ` as ${name}`;
}

function refusal({ count }: Detail): string {
  return typeof count === "number" && count > 1 ? `${count} stale writes` : "a stale write";
}

function epochs({ carried_epoch: carried, current_epoch: current }: Detail): string {
  if (typeof carried !== "number") return "";
  return ` under epoch ${carried}${typeof current === "number" ? `, and ${current} counts` : ""}`;
}

function jobs(detail: Detail): string {
  const count = Number(detail["jobs"] ?? 1);
  return `${count === 1 ? "a job" : `${count} jobs`} handed over, `;
}

/** What is counted over a while has no subject of its own. */
function about(subject: string | null, { operation }: Detail): string {
  return subject === null || subject === operation ? "" : ` ${subject}`;
}

function times({ count }: Detail): string {
  return typeof count === "number" && count > 1 ? `, ${count} times` : "";
}

function refused({ status }: Detail): string {
  return typeof status === "number" && status >= 400 ? ` (refused, ${status})` : "";
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
