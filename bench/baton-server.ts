/** A node with its HTTP listener, as a server under load. */

import { Baton, type BatonOptions } from "./baton.ts";
import { cpuMeter, type HttpSide } from "./http-side.ts";

/** With `run` the jobs are run as they come; else the workers are busy and only the submits are measured. */
export async function open(options: BatonOptions & { readonly run: boolean }): Promise<HttpSide> {
  const baton = new Baton({ ...options, http: true });
  return {
    async reset() {
      await baton.reset();
      if (options.run) baton.work(async () => {});
      return baton.node.url;
    },
    ...cpuMeter(),
    close: () => baton.close(),
  };
}
