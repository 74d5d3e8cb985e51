/**
 * Metrics of the process, under the names that dashboards for Node.js expect. The library's own collectors are not
 * used: they leave a timer, an observer of garbage collections and a histogram behind for every registry, and nodes
 * start and stop within one process.
 */

import type { Instruments, Reading } from "./instruments.ts";

export function describeProcess(instruments: Instruments, startedAt: number): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    instruments.gauge({ name, help }, read);
  const counter = (name: string, help: string, read: () => number): void =>
    instruments.counter({ name, help }, read);
  counter("process_cpu_user_seconds_total", "Time on the processor for the program itself.", () => {
    return process.cpuUsage().user / 1e6;
  });
  counter("process_cpu_system_seconds_total", "Time on the processor for the kernel.", () => {
    return process.cpuUsage().system / 1e6;
  });
  counter("process_cpu_seconds_total", "Time on the processor in all.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  gauge("process_start_time_seconds", "When this node was made, since 1970.", () => startedAt / 1_000);
  gauge("process_resident_memory_bytes", "Memory that the process holds.", () => process.memoryUsage.rss());
  instruments.gauge({ name: "nodejs_heap_size_bytes", help: "The heap of the engine." }, (): Reading[] => {
    const { heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
    return [
      [{ kind: "total" }, heapTotal],
      [{ kind: "used" }, heapUsed],
      [{ kind: "external" }, external],
      [{ kind: "array_buffers" }, arrayBuffers],
    ];
  });
  instruments.gauge(
    { name: "nodejs_active_resources", help: "What keeps the event loop busy." },
    (): Reading[] => {
      const counts = new Map<string, number>();
      for (const type of process.getActiveResourcesInfo()) counts.set(type, (counts.get(type) ?? 0) + 1);
      return [...counts].map(([type, count]) => [{ type }, count]);
    },
  );
}
