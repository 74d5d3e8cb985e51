/** Serves all pages of a browser from one stream: a node sees one reader, however many tabs there are. */

import { LiveStream } from "./live-stream.ts";
import { LogStream } from "./log-stream.ts";
import type { FromHub, LogNews, Tell, ToHub } from "./messages.ts";

/** Of the six connections that a browser has to a node; one more is for the cluster's news. */
const LOGS_STREAMED_MAX = 2;
const GATHER_MS = 100;
/** Pages in view speak every ten seconds. One that was killed says no goodbye. */
const SILENT_MS_MAX = 30_000;

interface Page {
  readonly tell: Tell;
  watches: boolean;
  heardAt: number;
  readonly logs: Map<number, LogStream>;
}

export class StreamHub {
  readonly #live: LiveStream;
  readonly #pages = new Set<Page>();
  #streamed = 0;

  constructor() {
    this.#live = new LiveStream((message) => {
      for (const page of this.#pages) if (page.watches) page.tell(message);
    });
    setInterval(() => this.#forgetSilent(), SILENT_MS_MAX / 3);
  }

  /** The function to call with what that page says. */
  join(tell: (message: FromHub) => void): (message: ToHub) => void {
    const page: Page = { tell, watches: false, heardAt: Date.now(), logs: new Map() };
    this.#pages.add(page);
    return (message) => {
      page.heardAt = Date.now();
      this.#pages.add(page);
      switch (message.do) {
        case "watch":
          return this.#watch(page);
        case "unwatch":
          return this.#leave(page);
        case "retry":
          return this.#live.retry();
        case "follow":
          return this.#follow(page, message.key, message.job, message.after);
        case "unfollow":
          page.logs.get(message.key)?.stop();
          page.logs.delete(message.key);
          return;
        case "ping":
          return;
      }
    };
  }

  #watch(page: Page): void {
    page.watches = true;
    page.tell({ is: "link", link: this.#live.link });
    if (this.#live.overview) page.tell(this.#live.overview);
    this.#live.start();
  }

  #leave(page: Page): void {
    page.watches = false;
    for (const log of page.logs.values()) log.stop();
    page.logs.clear();
    if (![...this.#pages].some(({ watches }) => watches)) this.#live.stop();
  }

  #follow(page: Page, key: number, job: string, after: number): void {
    const say = gathered((news) => page.tell({ is: "log", key, news }));
    page.logs.get(key)?.stop();
    page.logs.set(key, new LogStream({ job, after, takePlace: this.#takePlace, onNews: say }));
  }

  readonly #takePlace = (): (() => void) | null => {
    if (this.#streamed >= LOGS_STREAMED_MAX) return null;
    this.#streamed++;
    return () => void this.#streamed--;
  };

  #forgetSilent(): void {
    for (const page of this.#pages) {
      if (Date.now() - page.heardAt < SILENT_MS_MAX) continue;
      this.#leave(page);
      this.#pages.delete(page);
    }
  }
}

/** The first at once, and what comes soon after it together. */
function gathered(tell: (news: LogNews) => void): (news: LogNews) => void {
  let waiting: LogNews | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const flush = (): void => {
    timer = null;
    if (waiting === null) return;
    const news = waiting;
    waiting = null;
    tell(news);
    timer = setTimeout(flush, GATHER_MS);
  };
  return (news) => {
    waiting = waiting ? { ...waiting, ...news, lines: [...waiting.lines, ...news.lines] } : news;
    if (timer === null) flush();
  };
}
