/** What a page and the hub say to each other. The hub is in a worker that all pages of a browser share, or in the page itself. */

import type { LogLineBody } from "../../../src/api/bodies/job-body.ts";
import type { OverviewBody } from "../../../src/api/overview.ts";

export interface Link {
  /** `refused`: the node answers, but not us; nothing is tried until somebody has signed in. */
  readonly state: "connecting" | "live" | "lost" | "refused";
  /** Since when, by the clock of the browser. */
  readonly since: number;
  readonly why: string | null;
}

export type ToHub =
  | { readonly do: "watch" | "unwatch" | "retry" | "ping" }
  /** `key` is the page's own name for it. */
  | { readonly do: "follow"; readonly key: number; readonly job: string; readonly after: number }
  | { readonly do: "unfollow"; readonly key: number };

export type FromHub =
  | { readonly is: "link"; readonly link: Link }
  /** `heardAt` by the clock of the browser: a page that is opened later gets what was told before. */
  | { readonly is: "overview"; readonly body: OverviewBody; readonly heardAt: number }
  /** The journal has new entries. */
  | { readonly is: "journal" }
  | { readonly is: "log"; readonly key: number; readonly news: LogNews };

/** What came of a job's log since the last message. */
export interface LogNews {
  readonly lines: readonly LogLineBody[];
  readonly progress?: { readonly progress: number | null; readonly message: string | null };
  /** The job is finished and nothing follows. */
  readonly ended?: boolean;
  /** Why nothing comes at the moment; null when it comes again. */
  readonly trouble?: string | null;
}

export type Tell = (message: FromHub) => void;
