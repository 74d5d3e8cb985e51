/** `baton top` without a terminal: one line for each snapshot, one for each event. */

import type { JournalEntryBody } from "../../api/bodies/journal-body.ts";
import { count, perSecond, several, span } from "../terminal/number-format.ts";
import { journalText } from "../cluster/journal-text.ts";
import { plain } from "../terminal/plain-text.ts";
import type { OverviewBody } from "../../api/bodies/overview-body.ts";

export function overviewLine({
  at,
  leader,
  cluster,
  rates,
  backlog,
  workers,
  jobs,
  alerts,
}: OverviewBody): string {
  const lead = leader === null ? "nobody leads" : `${leader.node_id} leads (epoch ${leader.epoch})`;
  const oldest = backlog.oldest_age_ms === null ? "" : `, oldest ${span(backlog.oldest_age_ms)}`;
  const alarm =
    alerts.length === 0
      ? ""
      : `; ${several(alerts.length, "alert")}: ${alerts.map(({ code }) => code).join(", ")}`;
  return plain(
    `${at} ${lead}; ${cluster.active_nodes}/${cluster.total_nodes} nodes; in ${perSecond(rates.submitted_per_second)}, out ${perSecond(rates.finished_per_second)}, failing ${perSecond(rates.failed_per_second)}; ` +
      `running ${count(workers.running)}/${count(workers.slots)}, waiting ${count(backlog.ready)}${oldest}, failed ${count(jobs.failed)}${alarm}`,
  );
}

export function entryLine(entry: JournalEntryBody): string {
  return plain(`${entry.at} ${journalText(entry)}`);
}
