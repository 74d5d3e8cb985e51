/**
 * A program with a node and the SDK of OpenTelemetry, which it registers when the node runs already. Arguments: the store and
 * what the program does. Prints at its end what was exported.
 *
 *   submits   two jobs: one within a span of its own, one with a trace that it was given
 *   works     until it is asked to stop
 */

import { once } from "node:events";
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { createNode, defineTask } from "batonjs";

const [store, role] = process.argv.slice(2) as [string, "submits" | "works"];

const greet = defineTask({
  name: "greet",
  run: (who) => {
    trace.getTracer("program").startSpan("greeting").end();
    return `hello ${String(who)}`;
  },
});

await using node = await createNode({
  store,
  name: role,
  roles: role === "works" ? ["worker", "scheduler"] : ["scheduler"],
  tasks: [greet],
});
await node.start();

const spans = new InMemorySpanExporter();
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const meters = new MeterProvider({
  readers: [new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 })],
});
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(
  new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }),
);
metrics.setGlobalMeterProvider(meters);
console.log("ready");

if (role === "submits") {
  const results = [];
  await trace.getTracer("program").startActiveSpan("order", async (span) => {
    results.push(await (await node.submit(greet, "Ada")).result());
    span.end();
  });
  const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  results.push(await (await node.submit(greet, "Bob", { trace: given })).result());
  console.log(`results: ${results.join(", ")}`);
} else await once(process, "SIGTERM");

await meters.forceFlush();
const millis = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000 + nanos / 1e6;
const exported = {
  spans: spans.getFinishedSpans().map((span) => ({
    name: span.name,
    traceId: span.spanContext().traceId,
    spanId: span.spanContext().spanId,
    parent: span.parentSpanContext?.spanId ?? null,
    from: millis(span.startTime),
    to: millis(span.endTime),
  })),
  metrics: measured
    .getMetrics()
    .at(-1)!
    .scopeMetrics.flatMap(({ scope, metrics: made }) => (scope.name === "baton" ? made : []))
    .map(({ descriptor, dataPoints }) => ({
      name: descriptor.name,
      unit: descriptor.unit,
      points: dataPoints.map(({ attributes, value }) => ({ attributes, value })),
    })),
};
console.log(`exported: ${JSON.stringify(exported)}`);
