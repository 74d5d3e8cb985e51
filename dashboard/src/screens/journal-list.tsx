/** What happened in the cluster, in sentences. */

import type { ComponentChildren } from "preact";
import type { JournalEntryBody } from "../api/coming.ts";
import { JobLink } from "../parts/links.tsx";
import type { Tone } from "../parts/status.tsx";
import { Status } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";

const TONES: Readonly<Record<string, Tone>> = {
  "term.started": "good",
  "term.ended": "wait",
  "write.refused": "bad",
  "node.joined": "good",
  "node.left": "off",
  "node.dead": "bad",
  "node.draining": "wait",
  "node.drained": "off",
  "node.resumed": "good",
};

export function JournalList({ entries }: { entries: readonly JournalEntryBody[] }) {
  return (
    <ol class="journal">
      {entries.map((entry) => (
        <li key={`${entry.node} ${entry.id}`}>
          <Ago at={entry.at} />
          <Status word={entry.kind} tone={TONES[entry.kind] ?? "plain"} />
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
  const because = text("reason") ? `: ${text("reason")}` : "";
  switch (kind) {
    case "term.started":
      return `${subject ?? node} leads ${text("role") ?? ""} under epoch ${text("epoch")}${because}`;
    case "term.ended":
      return `${subject ?? node} leads ${text("role") ?? ""} no more (epoch ${text("epoch")})${because}`;
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
    default:
      return `${subject ?? node}${because}`;
  }
}
