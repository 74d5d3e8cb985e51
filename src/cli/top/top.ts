/** `baton top`: the cluster on one screen, live. */

import type { ReadStream } from "node:tty";
import type { Command } from "commander";
import type { BatonClient } from "../../client/baton-client.ts";
import { answerOf, CallError } from "../../client/client-error.ts";
import { connect, type NodeOptions, withNodeOptions } from "../node-options.ts";
import { journalText } from "../../core/journal-text.ts";
import { print, painted } from "../terminal/output.ts";
import { plain } from "../terminal/plain-text.ts";
import { say, styled, type Terminal } from "../terminal/terminal.ts";
import { overviewLine, type ScreenSize } from "./header-view.ts";
import { type Action, FIRST, type Model, step, type TopEvent } from "./top-model.ts";
import { pageOf, screen } from "./screen.ts";
import { Frame, TtySession } from "./tty-session.ts";
import type { Clock } from "../../platform/clock.ts";
import { repeat } from "../../platform/loop.ts";

/** Ages on the screen are in seconds. */
const REDRAW_MS = 1_000;
/** Events of one burst are drawn together. Longer, and keys feel slow. */
const GATHER_MS = 20;
const MESSAGE_MS = 6_000;

export function addTopCommand(program: Command, terminal: Terminal): void {
  withNodeOptions(program.command("top"))
    .description("the cluster on one screen, live")
    .action((options: NodeOptions) => top(terminal, options));
}

async function top(terminal: Terminal, options: NodeOptions): Promise<void> {
  await using client = await connect(terminal, options, { discover: true });
  const input = terminal.input as ReadStream;
  const asScreen = options.output === "table" && terminal.out.isTTY && input.isTTY && "setRawMode" in input;
  if (asScreen) await new Top(terminal, client, input).run();
  else await lines(terminal, client, options);
}

async function lines(terminal: Terminal, client: BatonClient, { output }: NodeOptions): Promise<void> {
  // One call that fails at once where no node is; the stream would go on trying.
  await client.health();
  const show = (event: string, data: unknown, text: () => string): void =>
    print(terminal, output, { event, data }, text, true);
  await stream(client, (event) => {
    if (event.kind === "trouble") say(terminal, `${event.reason}; trying again`);
    else if (event.kind === "overview") show("overview", event.overview, () => overviewLine(event.overview));
    else if (event.kind === "journal")
      for (const entry of event.entries)
        show("journal", entry, () => plain(`${entry.at} ${journalText(entry)}`));
  });
}

class Top {
  readonly #terminal: Terminal;
  readonly #client: BatonClient;
  readonly #session: TtySession;
  readonly #frame = new Frame();
  readonly #over = new AbortController();
  #model: Model = FIRST;
  #drawing: (() => void) | null = null;
  #quieting: () => void = () => {};

  constructor(terminal: Terminal, client: BatonClient, input: ReadStream) {
    this.#terminal = terminal;
    this.#client = client;
    this.#session = new TtySession({
      input,
      output: terminal.out,
      onKey: (key) => this.#tell({ kind: "key", key, page: pageOf(this.#model, this.#size()) }),
      onDirty: () => {
        this.#frame.forget();
        this.#draw();
      },
    });
  }

  async run(): Promise<void> {
    const { clock } = this.#terminal;
    const { signal } = this.#over;
    this.#session.start();
    try {
      const tell: Tell = (event) => this.#tell(event);
      const ticking = repeat(clock, signal, async () => {
        this.#draw();
        return REDRAW_MS;
      });
      const read = lists(this.#client, clock, tell, signal);
      await Promise.all([stream(this.#client, tell, signal), read, ticking]);
    } finally {
      this.#over.abort();
      this.#quieting();
      this.#drawing?.();
      this.#session.stop();
    }
  }

  #tell(event: TopEvent): void {
    if (this.#over.signal.aborted) return;
    const { model, todo } = step(this.#model, event);
    this.#model = model;
    if (model.message !== null) {
      this.#quieting();
      this.#quieting = this.#terminal.clock.after(MESSAGE_MS, () => this.#tell({ kind: "quiet" }));
    }
    if (todo === "quit") return this.#over.abort();
    if (todo === "suspend") return this.#session.suspend();
    if (todo === "redraw") this.#frame.forget();
    else if (todo !== null) void this.#act(todo);
    this.#drawing ??= this.#terminal.clock.after(GATHER_MS, () => this.#draw());
  }

  async #act(action: Action): Promise<void> {
    try {
      this.#tell({ kind: "done", text: await done(this.#client, action), bad: false });
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      this.#tell({ kind: "done", text: error.message, bad: true });
    }
  }

  #size(): ScreenSize {
    const { out, clock } = this.#terminal;
    return { width: out.columns ?? 80, height: out.rows ?? 24, now: clock.now() };
  }

  #draw(): void {
    this.#drawing?.();
    this.#drawing = null;
    if (this.#over.signal.aborted) return;
    const { out } = this.#terminal;
    const size = this.#size();
    const lines = screen(this.#model, size).map((line) =>
      painted(line, size.width, (style, text) => styled(out, style, text)),
    );
    const text = this.#frame.next(lines, size.width);
    if (text !== "") out.write(text);
  }
}

async function done(client: BatonClient, action: Action): Promise<string> {
  switch (action.do) {
    case "drain":
      await client.cluster.drain(action.node);
      return `${action.node} was asked to drain`;
    case "resume":
      await client.cluster.resume(action.node);
      return `${action.node} was asked to take work again`;
    case "pause":
      await client.pauseQueue(action.queue);
      return `${action.queue} is paused`;
    case "unpause":
      await client.resumeQueue(action.queue);
      return `${action.queue} resumed`;
    case "cancel": {
      const { status } = await client.cancel(action.job);
      return status === "cancelled" ? `${action.job} is cancelled` : `${action.job} was asked to stop`;
    }
  }
}

/** More often, and looking is work for the node; less, and a progress bar seems stuck. */
const LISTS_MS = 1_000;
/** More rows than the largest screen has. */
const JOBS_MAX = 200;
const EVENTS_MAX = 100;

type Tell = (event: TopEvent) => void;

async function stream(client: BatonClient, tell: Tell, signal?: AbortSignal): Promise<void> {
  const onTrouble = (error: CallError): void => tell({ kind: "trouble", reason: error.message });
  for await (const event of client.cluster.live({ signal, giveUpAfterMs: Infinity, onTrouble })) {
    if (event.event === "overview") tell({ kind: "overview", overview: event.overview });
    else tell({ kind: "journal", entries: [event.entry] });
  }
}

/** The lists of the screen, asked for once a second. The stream reports failures; a list that could not be read stays as it was. */
async function lists(client: BatonClient, clock: Clock, tell: Tell, signal: AbortSignal): Promise<void> {
  for (let first = true; !signal.aborted; first = false) {
    const [nodes, queues, jobs, journal] = await Promise.all([
      answerOf(client.cluster.nodes()),
      answerOf(client.queues()),
      answerOf(client.cluster.jobs({ status: "processing", limit: JOBS_MAX })),
      first ? answerOf(client.cluster.journal({ limit: EVENTS_MAX })) : null,
    ]);
    if (signal.aborted) return;
    tell({
      kind: "lists",
      lists: {
        ...(nodes && { nodes: nodes.nodes }),
        ...(queues && { queues: queues.queues }),
        ...(jobs && { jobs: jobs.items }),
      },
    });
    if (journal) tell({ kind: "journal", entries: journal.entries });
    await clock.sleep(LISTS_MS, signal);
  }
}
