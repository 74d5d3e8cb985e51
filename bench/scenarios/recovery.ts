/** kill -9 of a node that runs a job, while many jobs wait that nobody can run: until another node runs that job. */

import type { Actor } from "../actor.ts";
import type { BatonActions } from "../baton.ts";
import { ours as openOurs, pile, type Place } from "../engine.ts";
import { repeat } from "../failover-event.ts";
import { absolute, type Row, type Scenario } from "../scenario.ts";
import { percentile } from "../statistics.ts";
import { nowMs } from "../subject.ts";

const WAITING = 100_000;
const MS_MAX = 1_000;

type Node = Actor<BatonActions>;

export const recovery: Scenario = {
  name: "recovery",
  about: `kill -9 of a worker with ${WAITING.toLocaleString("en-US")} waiting jobs (times --scale); beside it the same with none`,
  only: "postgres",
  goals: ["postgres"],
  async run(bench) {
    const { engine, quick, scale } = bench;
    const waiting = Math.round((quick ? 20_000 : WAITING) * scale);
    const kills = quick ? 2 : 20;
    const place = await engine.place("recovery");
    const submitter = await openOurs(place, { name: "submitter", works: false, onReset: "keep" });
    const pair = new WorkerPair(place);
    try {
      const kill = (label: string): Promise<number[]> =>
        repeat(kills, `${label}, kill`, bench, () => pair.kill(submitter));
      const none = await kill("none waits");
      await pile(submitter, waiting, { queues: 1, task: "nobody-knows-it" });
      const count = waiting.toLocaleString("en-US");
      const many = await kill(`${count} wait`);
      const row = (figure: string, share: number, most: number | null): Row => {
        const [ours, floor] = [percentile(many, share), percentile(none, share)];
        return { ...absolute(figure, "ms", ours, most), floor, beside: "none waits", ratio: ours / floor };
      };
      return [row(`worker killed, ${count} wait: worst of ${kills}`, 1, MS_MAX), row("  p50", 0.5, null)];
    } finally {
      await Promise.all([submitter.stop(), pair.stop()]);
    }
  },
};

/** Two nodes that work; one that was killed is replaced by another. */
class WorkerPair {
  readonly #place: Place;
  #nodes: Node[] = [];
  #opened = 0;

  constructor(place: Place) {
    this.#place = place;
  }

  /** In ms, from the kill of the node that runs the job until it runs on the other. */
  async kill(submitter: Node): Promise<number> {
    while (this.#nodes.length < 2) this.#nodes.push(await this.#open());
    const hanging = this.#nodes.map((node) => node.call("hangs"));
    await submitter.call("submitOne");
    const first = await Promise.race(hanging.map((hangs, index) => hangs.then(() => index)));
    const [victim, survivor] = first === 0 ? this.#nodes : this.#nodes.toReversed();
    const killedAt = nowMs();
    await victim!.kill();
    const took = (await hanging[1 - first]!) - killedAt;
    await survivor!.call("serve");
    await survivor!.call("rest");
    this.#nodes = [survivor!];
    return took;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }

  #open(): Promise<Node> {
    return openOurs(this.#place, { name: `worker-${++this.#opened}`, onReset: "keep" });
  }
}
