/** What happened in the cluster, in sentences. */

import type { JournalEntryBody } from "../../../src/api/operations/cluster/journal.ts";
import { journalText, journalTone, words } from "../../../src/core/journal-text.ts";
import { amongPeers } from "../api/live.ts";
import { JobLink } from "../parts/links.tsx";
import { Status } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";

const KINDS: Readonly<Record<string, string>> = {
  "term.started": "new leader",
  "write.refused": "refused",
  handoff: "handed over",
  audit: "changed",
};

export function JournalList({ entries }: { entries: readonly JournalEntryBody[] }) {
  return (
    <ol class="journal">
      {entries.map((entry) => (
        <li key={`${entry.node} ${entry.id}`}>
          <Ago at={entry.at} />
          <Kind entry={entry} />
          <span class="journal-text">
            {textOf(entry)} {typeof entry.detail["job"] === "string" && <JobLink id={entry.detail["job"]} />}
          </span>
          <span class="muted">{entry.node}</span>
        </li>
      ))}
    </ol>
  );
}

function Kind({ entry }: { entry: JournalEntryBody }) {
  if (isOwnAffair(entry)) return <Status word="own store" tone="off" />;
  const word = KINDS[entry.kind] ?? entry.kind.replace("node.", "").replace(".", " ");
  return <Status word={word} tone={journalTone(entry.kind) ?? "plain"} />;
}

/** A peer that leads only its own store: other nodes are not concerned. */
export function isOwnAffair({ kind, subject, detail }: JournalEntryBody): boolean {
  return amongPeers.value && kind.startsWith("term.") && (detail["role"] ?? subject) !== "scheduler";
}

function textOf(entry: JournalEntryBody): string {
  const { kind, subject, detail, node } = entry;
  if (!isOwnAffair(entry)) return journalText(entry);
  const role = words(String(detail["role"] ?? subject ?? "leader"));
  return `${node} ${kind === "term.started" ? "is" : "was"} the ${role} of its own store`;
}
