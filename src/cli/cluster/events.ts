/** `baton events`: shows the events of the cluster as they happen. */

import { type Command, Option } from "commander";
import type { BatonClient, ClusterEvent } from "../../client/baton-client.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import { timeOrAge } from "../jobs/job-control.ts";
import { journalText, journalTone } from "../../core/journal-text.ts";
import { connectForLong, type NodeOptions, wholeNumber, withNodeOptions } from "../node-options.ts";
import { print, toneStyle } from "../terminal/output.ts";
import { plain } from "../terminal/plain-text.ts";
import { say, type Style, styled, type Terminal } from "../terminal/terminal.ts";
import type { JournalEntryBody } from "../../api/operations/cluster/journal.ts";
import type { BatonClientError } from "../../client/client-error.ts";
import { mayPass } from "../../client/streams/resumable-stream.ts";
import type { Clock } from "../../platform/clock.ts";

const SOURCES = ["journal", "jobs"] as const;
type Source = (typeof SOURCES)[number];

interface EventsOptions extends NodeOptions {
  readonly only?: Source;
  readonly last?: number;
  readonly since?: string;
  readonly after?: string;
}

/** One line, whichever stream it comes from. */
interface Told {
  readonly source: Source;
  readonly id: string | null;
  readonly at: string;
  readonly kind: string;
  readonly node: string | null;
  readonly [field: string]: unknown;
}

export function addEventsCommand(program: Command, terminal: Terminal): void {
  withNodeOptions(program.command("events"))
    .description("what happens in the cluster, as it happens")
    .addOption(
      new Option(
        "--only <source>",
        "journal: the cluster's own; jobs: what the leader's /v1 API tells",
      ).choices(SOURCES),
    )
    .option("--last <number>", "begin with the last entries of the journal (default 10)", wholeNumber)
    .option(
      "--since <time>",
      "begin with what the journal has since then: a time, or 1h",
      timeOrAge(terminal),
    )
    .option("--after <id>", "go on behind this event of the jobs, as 7-120")
    .addHelpText(
      "after",
      below(
        terminal,
        "With -o json each event is a line. What was missed while no node could be reached is told afterwards: all of the journal, and of the jobs what the node still has.",
      ),
    )
    .action((options: EventsOptions) => events(terminal, options));
}

async function events(terminal: Terminal, options: EventsOptions): Promise<void> {
  const { only, after, since, last } = options;
  if (after !== undefined && !/^\d{1,15}-\d{1,15}$/.test(after)) {
    const message = `--after must be the id of an event such as 7-120, not ${JSON.stringify(after)}`;
    throw new CliFailure(EXIT.usage, message);
  }
  await using client = await connectForLong(terminal, options);
  // One call that fails at once where no node is; the streams would go on trying.
  await client.health();
  const over = new AbortController();
  const show = (told: Told, text: () => string): void =>
    print({ ...terminal, streaming: true }, options.output, told, text);
  const running = [
    ...(only === "jobs"
      ? []
      : [
          journal(
            terminal,
            client,
            over.signal,
            { last: last ?? (since ? 0 : 10), since: since ?? null },
            show,
          ),
        ]),
    ...(only === "journal" ? [] : [jobs(terminal, client, over.signal, after, show)]),
  ];
  try {
    await Promise.all(running);
  } finally {
    over.abort();
  }
}

type Show = (told: Told, text: () => string) => void;

async function journal(
  terminal: Terminal,
  client: BatonClient,
  signal: AbortSignal,
  from: { readonly last: number; readonly since: string | null },
  show: Show,
): Promise<void> {
  const onTrouble = (reason: string): void => say(terminal, `${reason}; trying again`);
  for await (const entry of journalFeed({ client, clock: terminal.clock, signal, onTrouble, ...from })) {
    show({ source: "journal", ...entry }, () =>
      line(terminal, entry.at, entry.kind, journalText(entry), toneStyle(journalTone(entry.kind))),
    );
  }
}

const FOR_EVER_MS = Number.MAX_SAFE_INTEGER;

async function jobs(
  terminal: Terminal,
  client: BatonClient,
  signal: AbortSignal,
  after: string | undefined,
  show: Show,
): Promise<void> {
  const options = { signal, giveUpAfterMs: FOR_EVER_MS, ...(after !== undefined && { after }) };
  for await (const event of client.events(options)) {
    // Of the stream, not of what happens.
    if (event.event === "hello") continue;
    if (event.event === "gap") {
      say(terminal, event.data.message);
      continue;
    }
    const { data, id, event: kind } = event;
    show({ source: "jobs", id, at: data.ts, kind, node: data.node_id ?? null, data }, () =>
      line(terminal, data.ts, kind, dataText(data), STYLES[kind] ?? null),
    );
  }
}

const STYLES: Readonly<Record<string, Style>> = {
  "job.completed": "green",
  "result.accepted": "green",
  "job.failed": "red",
  "result.rejected": "red",
  "lease.expired": "yellow",
};

function line(terminal: Terminal, at: string, kind: string, text: string, style: Style | null): string {
  const { out } = terminal;
  const shown = plain(kind).padEnd(16);
  return `${styled(out, "dim", at)} ${style === null ? shown : styled(out, style, shown)} ${plain(text)}`;
}

/** `job_id=… task=…` */
function dataText(data: Extract<ClusterEvent, { id: string | null; data: { ts: string } }>["data"]): string {
  return Object.entries(data)
    .filter(([name]) => name !== "ts")
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

export interface JournalFeedOptions {
  readonly client: BatonClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Entries before now: so many, or since an instant (ISO-8601). */
  readonly last: number;
  readonly since: string | null;
  readonly onTrouble: (reason: string) => void;
}

const PAGE = 500;
/** Enough to know again what a page brings a second time. */
const SEEN_MAX = 5_000;

/** Oldest first, each once. Ends when the signal fires; rejects with what will not pass. */
export async function* journalFeed(options: JournalFeedOptions): AsyncGenerator<JournalEntryBody> {
  const { client, clock, signal } = options;
  const seen = new Set<string>();
  const fresh = (entries: readonly JournalEntryBody[]): JournalEntryBody[] =>
    entries.filter((entry) => {
      const key = `${entry.node} ${entry.id}`;
      if (seen.has(key)) return false;
      seen.add(key);
      if (seen.size > SEEN_MAX) seen.delete(seen.values().next().value!);
      return true;
    });
  let since = options.since;
  let last: number | null = options.last;
  /** What was written while there was no stream: at first, and after each loss. */
  let missed = true;
  const onTrouble = (error: BatonClientError): void => {
    missed = true;
    options.onTrouble(error.message);
  };
  for await (const event of client.cluster.live({ signal, giveUpAfterMs: Infinity, onTrouble })) {
    if (missed) {
      missed = false;
      try {
        const entries = await entriesBack(client, since, last);
        last = null;
        yield* fresh(entries);
        since = entries.at(-1)?.at ?? since ?? new Date(clock.now()).toISOString();
      } catch (error) {
        if (!mayPass(error)) throw error;
        // The next event brings another try; this one is among what is read then.
        onTrouble(error);
        continue;
      }
    }
    if (event.event !== "journal") continue;
    since = event.entry.at;
    yield* fresh([event.entry]);
  }
}

/** Oldest first. Entries of one instant may come again, and are recognized. */
async function entriesBack(
  client: BatonClient,
  since: string | null,
  last: number | null,
): Promise<readonly JournalEntryBody[]> {
  if (since === null) {
    if (!last) return [];
    return (await client.cluster.journal({ limit: Math.min(last, PAGE) })).entries.toReversed();
  }
  const entries: JournalEntryBody[] = [];
  for (let cursor: string | null = null; ;) {
    const page = await client.cluster.journal({ limit: PAGE, ...(cursor !== null && { cursor }) });
    const wanted = page.entries.filter(({ at }) => at >= since);
    entries.push(...wanted);
    cursor = page.next_cursor;
    if (wanted.length < page.entries.length || cursor === null) return entries.toReversed();
  }
}
