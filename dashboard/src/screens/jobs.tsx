/** The jobs of the whole cluster, newest first. */

import { useEffect, useState } from "preact/hooks";
import { ACTION_STATUSES, type JobStatus } from "../../../src/core/jobs/job.ts";
import { filterText } from "../../../src/core/jobs/job-fields.ts";
import { useResource } from "../api/resource.ts";
import { barredFrom } from "../api/session.ts";
import { count, plural } from "../parts/format.ts";
import { Empty, PartialNote, ResourceNote } from "../parts/notes.tsx";
import { Pager } from "../parts/links.tsx";
import { place, to } from "../route.ts";
import { type Bulk, openBulk } from "../shell/bulk.tsx";
import { Page } from "../shell/page.tsx";
import { FilterBar, filtersOf, type JobFilters, StatusTabs } from "./job-filters.tsx";
import { JobsTable } from "./jobs-table.tsx";

const PAGE = 50;

export function JobsScreen() {
  const { query } = place.value;
  const { cursor } = query;
  const filters = filtersOf(query);
  const asked = { ...filters, limit: PAGE, ...(cursor && { cursor }) };
  const listed = useResource("GET /cluster/jobs", { query: asked });
  const { data } = listed;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setChosen(new Set()), [JSON.stringify(query)]);

  const jobs = data?.items ?? [];
  const done = (): void => {
    setChosen(new Set());
    listed.reload();
  };
  return (
    <Page
      title="Jobs"
      actions={
        <a class="button primary" href={to(["jobs", "new"])}>
          New job
        </a>
      }
    >
      <StatusTabs />
      <FilterBar />
      <ResourceNote of={listed} what="jobs" />
      <PartialNote of={data} />
      {chosen.size > 0 && (
        <SelectionBar
          chosen={chosen}
          all={jobs.length === chosen.size && (data?.next_cursor ?? null) !== null}
          filters={filters}
          onNone={() => setChosen(new Set())}
          onDone={done}
        />
      )}
      {data && jobs.length === 0 && <NoJobs filters={filters} />}
      {jobs.length > 0 && <JobsTable jobs={jobs} chosen={chosen} onChoose={setChosen} />}
      <Pager next={data?.next_cursor} />
    </Page>
  );
}

interface SelectionProps {
  readonly chosen: ReadonlySet<string>;
  /** Whether all of this page are chosen, and there are more pages. */
  readonly all: boolean;
  readonly filters: JobFilters;
  readonly onNone: () => void;
  readonly onDone: () => void;
}

function SelectionBar({ chosen, all, filters, onNone, onDone }: SelectionProps) {
  /** Whether all that match are meant, and not only the chosen ones. */
  const [matching, setMatching] = useState(false);
  useEffect(() => setMatching(false), [chosen]);
  const what = matching ? `all ${filterText(filters)}` : plural(chosen.size, "job");
  const which = matching ? { filter: filters } : { ids: [...chosen] };
  const start = (action: Bulk["action"]) => () => openBulk({ action, what, ...which, onDone });
  const barred = barredFrom("POST /cluster/jobs/bulk");
  return (
    <div class="note busy row" role="region" aria-label="Selection">
      <strong>{matching ? `All ${filterText(filters)}` : `${count(chosen.size)} selected`}</strong>
      {all && !matching && (
        <button type="button" class="small" onClick={() => setMatching(true)}>
          Select all that match
        </button>
      )}
      <span class="grow" />
      {(["retry", "cancel", "delete"] as const).map((action) => {
        const why = barred ?? senseless(action, filters.status, matching);
        return (
          <button
            key={action}
            type="button"
            disabled={why !== null}
            title={why ?? undefined}
            onClick={start(action)}
          >
            {LABELS[action]}
          </button>
        );
      })}
      <button type="button" class="quiet" onClick={onNone}>
        Select none
      </button>
    </div>
  );
}

const LABELS = { retry: "Retry…", cancel: "Cancel…", delete: "Delete…" } as const;

/** Why that makes no sense for the jobs of this list; null if it does. */
function senseless(action: Bulk["action"], status: JobStatus | undefined, matching: boolean): string | null {
  if (status === undefined) {
    return action === "delete" && matching ? "Choose a state first: what is deleted is gone." : null;
  }
  return ACTION_STATUSES[action].includes(status) ? null : `Not possible while they are ${status}.`;
}

function NoJobs({ filters }: { filters: JobFilters }) {
  const filtered = Object.keys(filters).length > 0;
  if (filtered) {
    return (
      <Empty title={`There are no ${filterText(filters)}`}>
        <a href={to(["jobs"])}>Show all jobs</a>
      </Empty>
    );
  }
  return (
    <Empty
      title="There are no jobs yet"
      command={`baton submit identify-language '{"text":"Wo ist der Bahnhof?"}'`}
    >
      Submit one from a terminal, or with <a href={to(["jobs", "new"])}>New job</a> above.
    </Empty>
  );
}
