/** What happened in the cluster, in sentences. */

import type { ComponentChildren } from "preact";
import type { JournalEntryBody } from "../../../src/api/journal-body.ts";
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
          <Status word={KINDS[entry.kind]?.[0] ?? entry.kind} tone={KINDS[entry.kind]?.[1] ?? "plain"} />
          <span class="journal-text">{told(entry)}</span>
          <span class="muted">{entry.node}</span>
        </li>
      ))}
    </ol>
  );
}

export function told({ kind, actor, subject, detail, node }: JournalEntryBody): ComponentChildren {
  const text = (name: string): string | null => {
    const value = detail[name];
    if (value === undefined || value === null) return null;
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  };
  const role = (): string => `the ${(text("role") ?? subject ?? "cluster").replaceAll("_", " ")}`;
  const because = text("reason") ? `: ${text("reason")}` : "";
  switch (kind) {
    case "term.started":
      return `${node} leads ${role()} under epoch ${text("epoch")}${because}`;
    case "term.ended":
      return `${node} no longer leads ${role()} under epoch ${text("epoch")}${because}`;
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
      return `${actor ?? "somebody"}: ${text("operation") ?? ""} ${subject ?? ""}${text("status") ? ` (${text("status")})` : ""}`;
    case "node.joined":
      return `${subject ?? node} joined the cluster${because}`;
    case "node.left":
      return `${subject ?? node} left the cluster${because}`;
    case "node.dead":
      return `${subject ?? node} is dead; what it ran runs elsewhere${because}`;
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
