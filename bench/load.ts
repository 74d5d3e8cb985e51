/** The load generator, in a process of its own: it needs about as much CPU as the server that it drives. */

import autocannon from "autocannon";
import { payload } from "./subject.ts";

export interface Load {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Generator {
  press(options: {
    readonly url: string;
    readonly connections: number;
    readonly seconds: number;
  }): Promise<Load>;
}

export async function open(): Promise<Generator> {
  const body = JSON.stringify({ task: "bench", payload: payload(0) });
  return {
    async press({ url, connections, seconds }) {
      const result = await autocannon({
        url: `${url}/jobs`,
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        connections,
        duration: seconds,
        sampleInt: 100,
      });
      const wrong = result.errors + result.timeouts + result.non2xx;
      if (wrong > 0) throw new Error(`${wrong} of the requests to ${url} failed`);
      const requests = result["2xx"];
      return {
        requests,
        perSecond: requests / result.duration,
        p50Ms: result.latency.p50,
        p99Ms: result.latency.p99,
      };
    },
  };
}
