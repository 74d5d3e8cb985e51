import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:net";

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Monotonic µs, the same clock in every process of one machine. */
export const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);

export const PAD = "x".repeat(160);

export function quantile(sorted: number[], q: number): number {
  if (sorted.length === 0) return NaN;
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const high = Math.ceil(at);
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (at - low);
}

export function median(values: number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

export interface Spread {
  median: number;
  min: number;
  max: number;
  values: number[];
}

export function spread(values: number[]): Spread {
  const clean = values.filter((v) => Number.isFinite(v));
  return {
    median: median(clean),
    min: Math.min(...clean),
    max: Math.max(...clean),
    values: clean.map((v) => round(v)),
  };
}

export function percentiles(values: number[]): {
  p50: number;
  p95: number;
  p99: number;
  max: number;
  count: number;
} {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    p50: round(quantile(sorted, 0.5)),
    p95: round(quantile(sorted, 0.95)),
    p99: round(quantile(sorted, 0.99)),
    max: round(sorted.at(-1) ?? NaN),
    count: sorted.length,
  };
}

export const round = (v: number): number => (Math.abs(v) >= 1000 ? Math.round(v) : Number(v.toPrecision(4)));

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

const TICK_MS = 10; // USER_HZ is 100 on Linux

/** CPU ms used so far by a process, its living descendants and its reaped children. */
export function treeCpuMs(root: number): number {
  const stats = new Map<number, { parent: number; own: number; reaped: number }>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!pid) continue;
    try {
      const text = readFileSync(`/proc/${pid}/stat`, "utf8");
      const f = text.slice(text.lastIndexOf(")") + 2).split(" ");
      stats.set(pid, {
        parent: Number(f[1]),
        own: (Number(f[11]) + Number(f[12])) * TICK_MS,
        reaped: (Number(f[13]) + Number(f[14])) * TICK_MS,
      });
    } catch {
      // gone already
    }
  }
  let sum = 0;
  for (const [pid, s] of stats) {
    let at: number | undefined = pid;
    while (at && at !== root) at = stats.get(at)?.parent;
    if (at === root) sum += s.own + (pid === root ? s.reaped : 0);
  }
  return sum;
}

/** Share of CPU time stolen by the hypervisor, and the load of everything else. */
export function cpuTotals(): { busy: number; steal: number; total: number } {
  const f = readFileSync("/proc/stat", "utf8").split("\n")[0]!.trim().split(/\s+/).slice(1).map(Number);
  const total = f.slice(0, 8).reduce((a, b) => a + b, 0);
  return { busy: total - f[3]! - f[4]!, steal: f[7]!, total };
}

export function table(header: string[], rows: (string | number)[][]): string {
  const cells = [header, ...rows.map((r) => r.map(String))];
  const width = header.map((_, i) => Math.max(...cells.map((r) => (r[i] ?? "").length)));
  const line = (r: string[]) =>
    `| ${r.map((c, i) => (i === 0 ? c.padEnd(width[i]!) : c.padStart(width[i]!))).join(" | ")} |`;
  return [
    line(header),
    `|${width.map((w, i) => (i === 0 ? "-".repeat(w + 2) : `${"-".repeat(w + 1)}:`)).join("|")}|`,
    ...cells.slice(1).map(line),
  ].join("\n");
}

export function num(v: number | undefined | null, digits = 0): string {
  if (v === undefined || v === null || !Number.isFinite(v)) return "–";
  if (digits === 0) return Math.round(v).toLocaleString("en-US");
  return v.toFixed(digits);
}

/** Groups concurrent calls into batches: whatever arrives while a flush is under way goes into the next one. */
export function coalesce<T>(
  flush: (items: T[]) => Promise<void> | void,
  max = 1000,
  lanes = 1,
): (item: T) => Promise<void> {
  let waiting: { item: T; resolve: () => void; reject: (e: unknown) => void }[] = [];
  let running = 0;
  let scheduled = false;
  const pump = async (): Promise<void> => {
    scheduled = false;
    while (waiting.length > 0 && running < lanes) {
      const batch = waiting.splice(0, max);
      running++;
      try {
        await flush(batch.map((b) => b.item));
        for (const b of batch) b.resolve();
      } catch (error) {
        for (const b of batch) b.reject(error);
      } finally {
        running--;
      }
    }
  };
  return (item) =>
    new Promise<void>((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!scheduled && running < lanes) {
        scheduled = true;
        setImmediate(() => void pump());
      }
    });
}
