import type { MemorySample } from "../actions.ts";
import { ours as openOurs } from "../engine.ts";
import { cpuOf, withSides, type Row, type Scenario } from "../scenario.ts";

const MARKS = [0.1, 0.5, 1];
/** Less than five bytes a job, of which nothing could be kept for each. */
const HEAP_SLACK_MB = 4;
/** The page cache (64 MiB) and V8's young generation fill up during the first 200,000 jobs, so RSS counts from the middle. */
const RSS_SLACK_MB = 16;

export const memory: Scenario = {
  name: "memory",
  about: "RSS and heap, after a full collection, while jobs pass through a node",
  only: "sqlite",
  async run(bench) {
    const jobs = bench.quick ? 100_000 : 1_000_000;
    const ours = await openOurs(await bench.engine.place("ours"));
    return withSides({ ours }, async () => {
      const { flow, samples } = await ours.call("passThrough", { jobs, backlog: 20_000, marks: MARKS });
      const [first, middle] = samples as [MemorySample, MemorySample, MemorySample];
      const thousands = (count: number): string => count.toLocaleString("en-US");
      const rows = samples.flatMap((sample): Row[] => {
        const last = sample === samples.at(-1);
        const base = { unit: "MB", floor: null, ratio: null };
        const heapGrown = sample.heapMb - first.heapMb;
        const rssGrown = sample.rssMb - middle.rssMb;
        return [
          {
            ...base,
            figure: `heap after ${thousands(sample.jobs)} jobs`,
            ours: sample.heapMb,
            target: last ? { text: `< +${HEAP_SLACK_MB} since 10 %`, met: heapGrown < HEAP_SLACK_MB } : null,
          },
          {
            ...base,
            figure: `RSS after ${thousands(sample.jobs)} jobs`,
            ours: sample.rssMb,
            target:
              last && !bench.quick
                ? { text: `< +${RSS_SLACK_MB} since 50 %`, met: rssGrown < RSS_SLACK_MB }
                : null,
          },
        ];
      });
      const cpuUs = { ours: cpuOf([flow]), floor: null };
      const passed = { figure: "submitted and run meanwhile", unit: "jobs/s", ours: flow.perSecond };
      return [...rows, { ...passed, floor: null, ratio: null, cpuUs, target: null }];
    });
  },
};
