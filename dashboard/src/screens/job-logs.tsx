/** The log of a job, live. Only the rows in view are in the page, so that a hundred thousand lines scroll like ten. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LogLineBody } from "../../../src/api/bodies/job-body.ts";
import { line } from "../api/live.ts";
import { Check } from "../parts/check.tsx";
import { clock, count, exact, plural } from "../parts/format.ts";
import { LogBook, oneLine, pieces } from "./log-book.ts";

const ROW = 20;
const MARGIN_ROWS = 10;
const HEIGHT_MAX = 340;
const UPWARDS: ReadonlySet<string> = new Set(["ArrowUp", "PageUp", "Home"]);
/** How long a finger or a pointer moves it on after it was last seen. */
const BY_HAND_MS = 400;
/** Below the last row, for the bar that scrolls sideways. */
const BAR = 16;
const LEVELS = ["debug", "info", "warn", "error"] as const;

interface Props {
  readonly job: string;
  readonly running: boolean;
  /** It is being run: lines are to be expected. */
  readonly live: boolean;
  readonly onProgress: (progress: { progress: number | null; message: string | null }) => void;
  readonly onEnd: () => void;
}

export function JobLogs({ job, running, live, onProgress, onEnd }: Props) {
  const book = useRef(new LogBook()).current;
  const [version, setVersion] = useState(0);
  const [follow, setFollow] = useState(true);
  const [text, setText] = useState("");
  const [level, setLevel] = useState<LogLineBody["level"] | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [open, setOpen] = useState<LogLineBody | null>(null);
  book.filter({ text, level });
  /** The box of a job that runs has its full height from the start, and keeps it: what is below stays where it is. */
  const tall = useRef(live);
  tall.current ||= live;

  useEffect(() => {
    let frame: number | null = null;
    const draw = (): void => {
      frame ??= requestAnimationFrame(() => {
        frame = null;
        setVersion((version) => version + 1);
      });
    };
    const leave = line.follow(job, book.last, (news) => {
      book.add(news.lines);
      if (news.progress) onProgress(news.progress);
      if (news.trouble !== undefined) setTrouble(news.trouble);
      if (news.ended) onEnd();
      draw();
    });
    return () => {
      leave();
      if (frame !== null) cancelAnimationFrame(frame);
    };
    // A job that is retried has a log that goes on.
  }, [job, running]);

  return (
    <section aria-labelledby="log">
      <div class="row log-head">
        <h2 id="log">Log</h2>
        {book.size > 0 && (
          <>
            <label class="inline">
              <span class="unseen">Search the log</span>
              <input
                type="search"
                placeholder="search the log"
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            </label>
            <label class="inline">
              <span class="unseen">Level</span>
              <select
                value={level ?? ""}
                onChange={({ currentTarget: { value } }) =>
                  setLevel(LEVELS.find((each) => each === value) ?? null)
                }
              >
                <option value="">all levels</option>
                {LEVELS.map((each) => (
                  <option key={each} value={each}>
                    {each}
                  </option>
                ))}
              </select>
            </label>
            <Check label="follow" checked={follow} onChange={setFollow} />
            <span class="grow" />
            <span class="muted num">
              {text === "" && level === null
                ? plural(book.size, "line")
                : `${count(book.shown.length)} of ${plural(book.size, "line")}`}
            </span>
          </>
        )}
      </div>
      {trouble !== null && <p class="note wait">The log does not come in at the moment: {trouble}</p>}
      {book.size === 0 ? (
        <p class={tall.current ? "muted log log-none" : "muted"}>
          {running ? "No lines yet. They appear here as the task writes them." : "This job wrote no log."}
        </p>
      ) : (
        <Rows
          lines={book.shown}
          version={version}
          needle={text}
          tall={tall.current}
          follow={follow}
          onFollow={setFollow}
          onOpen={setOpen}
        />
      )}
      {open && (
        <div>
          <p class="muted">
            Line {open.seq}, {exact(Date.parse(open.at))}, run {open.job_epoch}
          </p>
          <pre class="code" tabIndex={0} role="region" aria-label={`Line ${open.seq}`}>
            {open.message}
          </pre>
        </div>
      )}
    </section>
  );
}

interface RowsProps {
  readonly lines: readonly LogLineBody[];
  /** The list is the same one and grows; this tells that it did, and without it the rows are not drawn again. */
  readonly version: number;
  readonly needle: string;
  readonly tall: boolean;
  readonly follow: boolean;
  readonly onFollow: (follow: boolean) => void;
  readonly onOpen: (line: LogLineBody) => void;
}

function Rows({ lines, needle, tall, follow, onFollow, onOpen }: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  /** When the reader last touched it. A box that grows scrolls by itself, and that is no wish to stay. */
  const touchedAt = useRef(-Infinity);
  const touched = (): void => void (touchedAt.current = performance.now());

  useLayoutEffect(() => {
    const element = box.current!;
    setHeight(element.clientHeight);
    if (!follow) return;
    element.scrollTop = element.scrollHeight;
    setTop(element.scrollTop);
  });

  const first = Math.max(0, Math.floor(top / ROW) - MARGIN_ROWS);
  const last = Math.min(lines.length, Math.ceil((top + height) / ROW) + MARGIN_ROWS);
  const scrolled = (): void => {
    const element = box.current!;
    setTop(element.scrollTop);
    const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW;
    const byHand = performance.now() - touchedAt.current < BY_HAND_MS;
    if (follow && !atEnd && byHand) onFollow(false);
  };
  return (
    <div
      class="log"
      ref={box}
      style={{ height: `${tall ? HEIGHT_MAX : Math.min(HEIGHT_MAX, lines.length * ROW + BAR)}px` }}
      onScroll={scrolled}
      // Before it has moved: a box that follows would jump back to its end.
      onWheel={({ deltaY }) => deltaY < 0 && onFollow(false)}
      onTouchMove={touched}
      onPointerDown={touched}
      onPointerMove={(event) => event.buttons !== 0 && touched()}
      onKeyDown={({ key }) => UPWARDS.has(key) && onFollow(false)}
      tabIndex={0}
      role="region"
      aria-label="Log lines"
    >
      <div class="log-all" style={{ height: `${lines.length * ROW}px` }}>
        <div class="log-view" style={{ transform: `translateY(${first * ROW}px)` }}>
          {lines.slice(first, last).map((each) => (
            <div key={each.seq} class={`log-row ${each.level}`} onClick={() => onOpen(each)}>
              <span class="log-time" title={exact(Date.parse(each.at))}>
                {clock(Date.parse(each.at))}
              </span>
              <span class="log-level">{each.level}</span>
              <span class="log-text">
                {pieces(oneLine(each.message), needle).map((piece, index) =>
                  index % 2 === 1 ? <mark key={index}>{piece}</mark> : piece,
                )}
              </span>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
