/** The load generator, in a process of its own: it needs about as much CPU as the server that it drives. */

import autocannon from "autocannon";
import { percentile } from "./statistics.ts";
import { payload } from "./subject.ts";

export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Press {
  /** One server, or several among which the connections are divided. */
  readonly url: string | readonly string[];
  readonly connections: number;
  readonly seconds: number;
  /** Path of what is read; without it jobs are submitted. */
  readonly get?: string;
  /** Jobs in one request, 1 if it does not say so. */
  readonly batch?: number;
}

export interface Generator {
  press(options: Press): Promise<Load>;
}

export async function open(): Promise<Generator> {
  const job = { task: "bench", payload: payload(0) };
  const headers = { "content-type": "application/json" };
  return {
    async press({ url, connections, seconds, get, batch = 1 }) {
      const body = JSON.stringify(batch === 1 ? job : Array.from({ length: batch }, () => job));
      const urls = [url].flat().map((each) => `${each}${get ?? "/jobs"}`);
      const request = get ? ({ method: "GET" } as const) : ({ method: "POST", headers, body } as const);
      const run = autocannon({ url: urls, ...request, connections, duration: seconds, sampleInt: 100 });
      // Its own percentiles are in whole milliseconds.
      const tookMs: number[] = [];
      run.on("response", (_client, _status, _bytes, ms) => tookMs.push(ms));
      const result = await run;
      const wrong = result.errors + result.timeouts + result.non2xx;
      if (wrong > 0) throw new Error(`${wrong} of the requests to ${urls.join(", ")} failed`);
      const requests = result["2xx"];
      return {
        requests,
        perSecond: requests / result.duration,
        p50Ms: percentile(tookMs, 0.5),
        p99Ms: percentile(tookMs, 0.99),
      };
    },
  };
}
