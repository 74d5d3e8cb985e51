import type { MemorySample } from "../actions.ts";
import { ours as openOurs } from "../engine.ts";
import { absolute, cpuOf, withSides, type Row, type Scenario, type Target } from "../scenario.ts";

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
      const rows = samples.flatMap((sample): Row[] => {
        const last = sample === samples.at(-1);
        const after = `after ${sample.jobs.toLocaleString("en-US")} jobs`;
        const heap = absolute(`heap ${after}`, "MB", sample.heapMb, null);
        const rss = absolute(`RSS ${after}`, "MB", sample.rssMb, null);
        return [
          last ? { ...heap, target: grown(sample.heapMb - first.heapMb, HEAP_SLACK_MB, "10 %") } : heap,
          last && !bench.quick
            ? { ...rss, target: grown(sample.rssMb - middle.rssMb, RSS_SLACK_MB, "50 %") }
            : rss,
        ];
      });
      const passed = absolute("submitted and run meanwhile", "jobs/s", flow.perSecond, null);
      return [...rows, { ...passed, cpuUs: { ours: cpuOf([flow]), floor: null } }];
    });
  },
};

function grown(mb: number, most: number, since: string): Target {
  return { text: `< +${most} since ${since}`, met: mb < most };
}
