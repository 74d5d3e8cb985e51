/** Formats entries of the journal as text, for the command line and the dashboard. */

interface JournalFields {
  readonly kind: string;
  readonly node: string;
  readonly actor: string | null;
  readonly subject: string | null;
  readonly detail: Detail;
}

type Detail = Readonly<Record<string, unknown>>;

const NODE_WORDS: Readonly<Record<string, string>> = {
  "node.joined": "joined",
  "node.left": "left",
  "node.dead": "is dead",
  "node.draining": "is draining",
  "node.drained": "is drained",
  "node.resumed": "works again",
};

/** One sentence, without the time. */
export function journalText({ kind, node, actor, subject, detail }: JournalFields): string {
  const say = (name: string): string => text(detail[name]);
  const why = detail["reason"] ? `: ${say("reason")}` : "";
  // People mean the leadership of the scheduler.
  const role = subject === null || subject === "scheduler" ? "" : words(subject);
  switch (kind) {
    case "term.started":
      return `${say("leader") || node} leads${role && ` as ${role}`} under epoch ${say("epoch")}`;
    case "term.ended":
      return `${say("leader") || node} lost ${role && `${role} `}leadership (epoch ${say("epoch")})${why}`;
    case "write.refused":
      return `${refusal(detail)} of ${node} refused: ${say("what")}${epochs(detail)}${subject === null ? "" : `, ${subject}`}`;
    case "handoff":
      return `${jobs(detail)} handed over, ${say("from") || "?"} → ${say("to") || "none"}${why}`;
    case "audit":
      return `${actor ?? "unknown"} ${auditText(subject, detail)}`;
    default: {
      const word = NODE_WORDS[kind];
      return word
        ? `${subject ?? node} ${word}${why}`
        : [kind, subject ?? "", JSON.stringify(detail)].join(" ");
    }
  }
}

export function journalTone(kind: string): "good" | "bad" | "wait" | null {
  if (kind === "node.dead" || kind === "write.refused") return "bad";
  if (kind === "term.started" || kind === "node.joined" || kind === "node.resumed") return "good";
  return kind === "term.ended" || kind === "node.draining" ? "wait" : null;
}

function refusal({ count }: Detail): string {
  return typeof count === "number" && count > 1 ? `${count} stale writes` : "a stale write";
}

function epochs({ carried_epoch: carried, current_epoch: current }: Detail): string {
  if (typeof carried !== "number") return "";
  return ` under epoch ${carried}${typeof current === "number" ? `, current is ${current}` : ""}`;
}

function jobs(detail: Detail): string {
  const count = Number(detail["jobs"] ?? 1);
  return count === 1 ? "a job" : `${count} jobs`;
}

/** "pause queue mail", "submit jobs, 13 times", "retry job … (refused, 409)". */
function auditText(subject: string | null, { operation, count, status }: Detail): string {
  // An operation that is counted over a while has no subject of its own.
  const about = subject === null || subject === operation ? "" : ` ${subject}`;
  const times = typeof count === "number" && count > 1 ? `, ${count} times` : "";
  const refused = typeof status === "number" && status >= 400 ? ` (refused, ${status})` : "";
  return `${words(text(operation))}${about}${times}${refused}`;
}

export function words(name: string): string {
  return name.replaceAll("_", " ");
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
