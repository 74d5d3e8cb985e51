/** What happened in the cluster, in sentences. */

import type { ComponentChildren } from "preact";
import type { JournalEntryBody } from "../../../src/api/bodies/journal-body.ts";
import { amongPeers } from "../api/live.ts";
import { plural } from "../parts/format.ts";
import { JobLink } from "../parts/links.tsx";
import type { Tone } from "../parts/status.tsx";
import { Status } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";

/** What each kind is called, and how it is to be taken. */
const KINDS: Readonly<Record<string, readonly [string, Tone]>> = {
  "term.started": ["new leader", "good"],
  "term.ended": ["term ended", "wait"],
  "write.refused": ["refused", "bad"],
  "node.joined": ["joined", "good"],
  "node.left": ["left", "off"],
  "node.dead": ["dead", "bad"],
  "node.draining": ["draining", "wait"],
  "node.drained": ["drained", "off"],
  "node.resumed": ["resumed", "good"],
  handoff: ["handed over", "busy"],
  audit: ["changed", "plain"],
};

export function JournalList({ entries }: { entries: readonly JournalEntryBody[] }) {
  return (
    <ol class="journal">
      {entries.map((entry) => (
        <li key={`${entry.node} ${entry.id}`}>
          <Ago at={entry.at} />
          <Kind entry={entry} />
          <span class="journal-text">{told(entry)}</span>
          <span class="muted">{entry.node}</span>
        </li>
      ))}
    </ol>
  );
}

function Kind({ entry }: { entry: JournalEntryBody }) {
  if (isOwnAffair(entry)) return <Status word="own store" tone="off" />;
  const [word, tone] = KINDS[entry.kind] ?? [entry.kind, "plain"];
  return <Status word={word} tone={tone} />;
}

/** A peer that begins or ends to look after its own store: nothing that the others feel. */
export function isOwnAffair({ kind, subject, detail }: JournalEntryBody): boolean {
  return amongPeers.value && kind.startsWith("term.") && (detail["role"] ?? subject) !== "scheduler";
}

export function told(entry: JournalEntryBody): ComponentChildren {
  const { kind, actor, subject, detail, node } = entry;
  const text = (name: string): string | null => {
    const value = detail[name];
    if (value === undefined || value === null) return null;
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  };
  const role = (): string => `the ${(text("role") ?? subject ?? "cluster").replaceAll("_", " ")}`;
  const because = text("reason") ? `: ${text("reason")}` : "";
  switch (kind) {
    case "term.started":
      if (isOwnAffair(entry)) return `${node} is ${role()} of its own store`;
      return `${text("leader") ?? node} leads ${role()} under epoch ${text("epoch")}${because}`;
    case "term.ended":
      if (isOwnAffair(entry)) return `${node} was ${role()} of its own store${because}`;
      return `${text("leader") ?? node} no longer leads ${role()} under epoch ${text("epoch")}${because}`;
    case "write.refused":
      return (
        <>
          a stale write was refused: {text("what")}
          {text("job") && (
            <>
              {" of "}
              <JobLink id={text("job")!} />
            </>
          )}
        </>
      );
    case "handoff":
      return `${text("jobs") ?? subject ?? "jobs"}: from ${text("from") ?? "nobody"} to ${text("to") ?? "nobody"}${because}`;
    case "audit":
      return `${actor ?? "somebody"}: ${changeIn(entry)}`;
    case "node.joined":
      return `${subject ?? node} joined the cluster${because}`;
    case "node.left":
      return `${subject ?? node} left the cluster${because}`;
    case "node.dead":
      return `${subject ?? node} is dead; ${amongPeers.value ? "its jobs wait until it is back" : "what it ran runs elsewhere"}${because}`;
    case "node.draining":
      return `${subject ?? node} takes no more work${because}`;
    case "node.drained":
      return `${subject ?? node} has finished what it ran${because}`;
    case "node.resumed":
      return `${subject ?? node} takes work again${because}`;
    default:
      return `${subject ?? node}${because}`;
  }
}

/** "pause queue mail", "submit jobs, 13 times", "retry job … (refused: 409)". */
function changeIn({ subject, detail }: JournalEntryBody): string {
  const { operation, status, count: times } = detail;
  const what = typeof operation === "string" ? operation.replaceAll("_", " ") : "a change";
  const of = subject === null || subject === operation ? "" : ` ${subject}`;
  const often = typeof times === "number" && times > 1 ? `, ${plural(times, "time")}` : "";
  const refused = typeof status === "number" && status >= 400 ? ` (refused: ${status})` : "";
  return `${what}${of}${often}${refused}`;
}
