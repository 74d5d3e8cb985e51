/** `baton events`: shows the events of the cluster as they happen. */

import { type Command, Option } from "commander";
import type { BatonClient, ClusterEvent, StreamOptions } from "../../client/baton-client.ts";
import { CliFailure, EXIT } from "../failure.ts";
import { below } from "../terminal/help-layout.ts";
import { journalText, journalTone } from "../../core/journal-text.ts";
import { connect, type NodeOptions, timeOrAge, wholeNumber, withNodeOptions } from "../node-options.ts";
import { print, toneStyle } from "../terminal/output.ts";
import { plain } from "../terminal/plain-text.ts";
import { say, type Style, styled, type Terminal } from "../terminal/terminal.ts";
import type { JournalEntryBody } from "../../api/operations/cluster/journal.ts";
import type { CallError } from "../../client/client-error.ts";
import { mayPass } from "../../client/streams/resumable-stream.ts";

const SOURCES = ["journal", "jobs"] as const;
interface EventsOptions extends NodeOptions {
  readonly only?: (typeof SOURCES)[number];
  readonly last?: number;
  readonly since?: string;
  readonly after?: string;
  readonly follow?: boolean;
}

interface Told {
  readonly at: string;
  readonly kind: string;
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
    .option("--last <number>", "the last entries of the journal, and no more without -f", wholeNumber)
    .option(
      "--since <time>",
      "what the journal has since then (a time, or 1h), and no more without -f",
      timeOrAge(terminal),
    )
    .option("-f, --follow", "with --last or --since: go on with what happens then")
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
  await using client = await connect(terminal, options, { discover: true });
  // One call that fails at once where no node is; the streams would go on trying.
  await client.health();
  const over = new AbortController();
  const stream = { signal: over.signal, giveUpAfterMs: Infinity };
  const show = (told: Told & Record<string, unknown>, text: string, style: Style | null): void =>
    print(terminal, options.output, told, () => line(terminal, told, text, style), true);
  const showEntry = (entry: JournalEntryBody): void =>
    show({ source: "journal", ...entry }, journalText(entry), toneStyle(journalTone(entry.kind)));
  if ((last !== undefined || since !== undefined) && !options.follow && only !== "jobs") {
    for (const entry of await entriesBack(client, since ?? null, last ?? (since ? 0 : FIRST)))
      showEntry(entry);
    return;
  }
  const journal = async (): Promise<void> => {
    const from = { last: last ?? (since ? 0 : FIRST), since: since ?? null };
    for await (const entry of journalFeed(terminal, client, stream, from)) showEntry(entry);
  };
  const jobs = async (): Promise<void> => {
    for await (const event of client.events({ ...stream, after })) {
      // Of the stream, not of what happens.
      if (event.event === "hello") continue;
      if (event.event === "gap") {
        say(terminal, event.data.message);
        continue;
      }
      const { data, id, event: kind } = event;
      const told = { source: "jobs", id, at: data.ts, kind, node: data.node_id ?? null, data };
      show(told, dataText(data), STYLES[kind] ?? null);
    }
  };
  try {
    await Promise.all([...(only === "jobs" ? [] : [journal()]), ...(only === "journal" ? [] : [jobs()])]);
  } finally {
    over.abort();
  }
}

const STYLES: Readonly<Record<string, Style>> = {
  "job.completed": "green",
  "result.accepted": "green",
  "job.failed": "red",
  "result.rejected": "red",
  "lease.expired": "yellow",
};

function line({ out }: Terminal, { at, kind }: Told, text: string, style: Style | null): string {
  const shown = plain(kind).padEnd(16);
  return `${styled(out, "dim", at)} ${style === null ? shown : styled(out, style, shown)} ${plain(text)}`;
}

function dataText(data: Extract<ClusterEvent, { id: string | null; data: { ts: string } }>["data"]): string {
  return Object.entries(data)
    .filter(([name]) => name !== "ts")
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

/** Entries of the journal to begin with. */
const FIRST = 10;
const PAGE = 500;
const SEEN_MAX = 5_000;

/** The journal as one stream that resumes after each loss: oldest first, each entry once. Rejects with what will not pass. */
async function* journalFeed(
  terminal: Terminal,
  client: BatonClient,
  stream: StreamOptions,
  from: { readonly last: number; readonly since: string | null },
): AsyncGenerator<JournalEntryBody> {
  const seen = new Set<string>();
  const fresh = (entries: readonly JournalEntryBody[]): JournalEntryBody[] =>
    entries.filter((entry) => {
      const key = `${entry.node} ${entry.id}`;
      if (seen.has(key)) return false;
      seen.add(key);
      if (seen.size > SEEN_MAX) seen.delete(seen.values().next().value!);
      return true;
    });
  let { since } = from;
  let last: number | null = from.last;
  /** What was written while there was no stream: at first, and after each loss. */
  let missed = true;
  const onTrouble = (error: CallError): void => {
    missed = true;
    say(terminal, `${error.message}; trying again`);
  };
  for await (const event of client.cluster.live({ ...stream, onTrouble })) {
    if (missed) {
      missed = false;
      try {
        const entries = await entriesBack(client, since, last);
        last = null;
        yield* fresh(entries);
        since = entries.at(-1)?.at ?? since ?? new Date(terminal.clock.now()).toISOString();
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
  for (let cursor: string | undefined; ;) {
    const page = await client.cluster.journal({ limit: PAGE, cursor });
    const wanted = page.entries.filter(({ at }) => at >= since);
    entries.push(...wanted);
    cursor = page.next_cursor ?? undefined;
    if (wanted.length < page.entries.length || cursor === undefined) return entries.toReversed();
  }
}
