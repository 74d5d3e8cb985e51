// What this machine gives everybody: durable writes, loopback round trips, one core of JavaScript.
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { nowUs, percentiles, round, spread } from "../util.ts";
import type { Scenario } from "../scenario.ts";

type Percentiles = ReturnType<typeof percentiles>;

function fsyncs(count: number, bytes: number): number[] {
  const dir = mkdtempSync(join(tmpdir(), "peers-bench-"));
  const fd = openSync(join(dir, "f"), "w");
  const block = Buffer.alloc(bytes, 1);
  const ms: number[] = [];
  for (let i = 0; i < count; i++) {
    const t = nowUs();
    writeSync(fd, block);
    fdatasyncSync(fd);
    ms.push((nowUs() - t) / 1000);
  }
  closeSync(fd);
  rmSync(dir, { recursive: true });
  return ms;
}

async function roundTrips(count: number): Promise<number[]> {
  const server = createServer((s) => {
    s.setNoDelay(true);
    s.on("data", (d) => s.write(d));
  });
  await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
  const socket = connect((server.address() as { port: number }).port, "127.0.0.1");
  socket.setNoDelay(true);
  const ms: number[] = [];
  for (let i = 0; i < count; i++) {
    const t = nowUs();
    await new Promise<void>((r) => {
      socket.once("data", () => r());
      socket.write("x");
    });
    ms.push((nowUs() - t) / 1000);
  }
  socket.destroy();
  server.close();
  return ms;
}

function javascript(): number {
  const t = nowUs();
  let n = 0;
  while (nowUs() - t < 200_000) {
    createHash("sha256")
      .update(JSON.stringify({ n, a: [1, 2, 3], s: "x".repeat(100) }))
      .digest();
    n++;
  }
  return n / 0.2;
}

export const machine: Scenario = {
  name: "machine",
  about: "the machine itself: fdatasync, loopback, one core",
  async run(bench) {
    const rounds: { append: Percentiles; big: Percentiles; rtt: Percentiles; js: number }[] = [];
    for (let i = 0; i < bench.rounds; i++) {
      rounds.push({
        append: percentiles(fsyncs(300, 4096)),
        big: percentiles(fsyncs(60, 262_144)),
        rtt: percentiles(await roundTrips(2000)),
        js: javascript(),
      });
    }
    const pick = (f: (r: (typeof rounds)[number]) => number) => round(spread(rounds.map(f)).median);
    const rows = [
      ["4 KiB append + fdatasync, p50 ms", pick((r) => r.append.p50)],
      ["4 KiB append + fdatasync, p99 ms", pick((r) => r.append.p99)],
      ["256 KiB append + fdatasync, p50 ms", pick((r) => r.big.p50)],
      ["loopback TCP round trip in one process, p50 ms", pick((r) => r.rtt.p50)],
      ["sha256 of a small JSON, per second on one core", pick((r) => r.js)],
      [
        "the same, slowest and fastest round",
        `${Math.round(Math.min(...rounds.map((r) => r.js)))} … ${Math.round(Math.max(...rounds.map((r) => r.js)))}`,
      ],
    ];
    bench.table("Machine", ["what", "median"], rows as (string | number)[][]);
    return rounds;
  },
};
