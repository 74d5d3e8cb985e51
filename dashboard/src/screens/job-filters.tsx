/** Which jobs are listed. The filters stand in the address, so that a link shows the same list to somebody else. */

import { isJobId } from "../../../src/core/ids.ts";
import { JOB_STATUSES, type JobStatus } from "../../../src/core/jobs/job.ts";
import { type FieldFilters, FILTER_FIELDS, filtersIn } from "../../../src/core/jobs/job-fields.ts";
import { overview } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import { now } from "../clock.ts";
import { compact } from "../parts/format.ts";
import { type Tab, Tabs } from "../parts/links.tsx";
import { ChoiceField } from "../parts/schema-form.tsx";
import { go, place, refine, to } from "../route.ts";

export interface JobFilters extends FieldFilters {
  readonly status?: JobStatus;
  readonly since?: string;
  readonly until?: string;
  readonly error_code?: string;
}

const WITHIN: Readonly<Record<string, readonly [string, number]>> = {
  "15m": ["the last 15 minutes", 15 * 60_000],
  "1h": ["the last hour", 3_600_000],
  "24h": ["the last day", 86_400_000],
  "7d": ["the last week", 7 * 86_400_000],
};

const PERIODS = Object.entries(WITHIN).map(([value, [text]]) => [value, `in ${text}`] as const);

/** Whole minutes, so that the same question is not another one every second. */
const GRAIN_MS = 60_000;

/** As the API is asked. */
export function filtersOf(query: Readonly<Record<string, string>>): JobFilters {
  const { status, since, until, error_code, within } = query;
  const period = within === undefined ? undefined : WITHIN[within]?.[1];
  const from =
    period === undefined ? since : new Date(Math.floor((now() - period) / GRAIN_MS) * GRAIN_MS).toISOString();
  return {
    ...(JOB_STATUSES.some((each) => each === status) && { status: status as JobStatus }),
    ...filtersIn(query),
    ...(from && { since: from }),
    ...(until && { until }),
    ...(error_code && { error_code }),
  };
}

export function StatusTabs() {
  const { query } = place.value;
  const counts = overview.value?.jobs;
  // Only what is counted in all: the numbers are those of the cluster, not of a queue or a task.
  const plain = Object.keys(filtersIn(query)).length === 0 && !query["within"];
  const { status: _status, cursor: _cursor, ...rest } = query;
  return (
    <Tabs label="Jobs by state" current={query["status"] ?? ""}>
      {[
        ["", to(["jobs"], rest), "all"],
        ...JOB_STATUSES.map((status): Tab => [
          status,
          to(["jobs"], { ...rest, status }),
          <>
            {status}
            {plain && counts && <span class="badge num">{compact(counts[status])}</span>}
          </>,
        ]),
      ]}
    </Tabs>
  );
}

/** Those without a field of their own. */
const OTHER_FILTERS = FILTER_FIELDS.filter(({ kind }) => kind === "texts");

export function FilterBar() {
  const { query } = place.value;
  const queues = useResource("GET /queues", {}, { freshMs: 30_000 }).data?.queues ?? [];
  const names = new Set([...queues.map(({ name }) => name), ...(query["queue"] ? [query["queue"]] : [])]);
  const nodes = useResource("GET /cluster/nodes", {}, { freshMs: 60_000 }).data?.nodes ?? [];
  const tasks = [...new Set(nodes.flatMap(({ capabilities }) => capabilities))].sort();
  const find = (event: SubmitEvent): void => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("find") as HTMLInputElement;
    const text = field.value.trim();
    if (isJobId(text)) go(["jobs", text]);
    else refine({ task: text, cursor: null });
  };
  const filtered = Object.keys(query).some((name) => name !== "status" && name !== "cursor");
  return (
    <form class="filters" role="search" onSubmit={find}>
      <label>
        <span>Task or job id</span>
        <input
          type="search"
          name="find"
          list="tasks"
          placeholder="press / to search"
          defaultValue={query["task"] ?? ""}
          key={query["task"] ?? ""}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <datalist id="tasks">
        {tasks.map((task) => (
          <option key={task} value={task} />
        ))}
      </datalist>
      <ChoiceField
        label="Queue"
        value={query["queue"] ?? ""}
        options={[["", "all"], ...[...names].map((name) => [name, name] as const)]}
        onChange={(queue) => refine({ queue, cursor: null })}
      />
      {OTHER_FILTERS.map(({ filter: { name, label } }) => (
        <label key={name}>
          <span>{label}</span>
          <input
            type="search"
            defaultValue={query[name] ?? ""}
            key={query[name] ?? ""}
            autocomplete="off"
            spellcheck={false}
            onChange={({ currentTarget }) => refine({ [name]: currentTarget.value.trim(), cursor: null })}
          />
        </label>
      ))}
      <ChoiceField
        label="Created"
        value={query["within"] ?? ""}
        options={[["", "at any time"], ...PERIODS]}
        onChange={(within) => refine({ within, cursor: null })}
      />
      {(["error_code", "since", "until"] as const).map(
        (name) =>
          query[name] && (
            <span key={name} class="badge only">
              {name.replace("_", " ")} {query[name]}
            </span>
          ),
      )}
      {filtered && (
        <a class="small-link" href={to(["jobs"], { status: query["status"] })}>
          clear
        </a>
      )}
    </form>
  );
}
