/** Traces and metrics of the OpenTelemetry SDK, of jobs that one process submits and another one runs. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { PostgresServer } from "../../support/postgres-server.ts";
import { script, type TestProcess } from "../../support/process.ts";
import { columns } from "../../support/columns.ts";

const PROGRAM = fileURLToPath(new URL("../../support/traced-program.ts", import.meta.url));

interface Exported {
  readonly spans: readonly {
    readonly name: string;
    readonly traceId: string;
    readonly spanId: string;
    readonly parent: string | null;
    readonly from: number;
    readonly to: number;
  }[];
  readonly metrics: readonly {
    readonly name: string;
    readonly unit: string;
    readonly points: readonly {
      readonly attributes: Readonly<Record<string, string>>;
      readonly value: number | { readonly count: number; readonly sum: number };
    }[];
  }[];
}

async function exportedBy(program: TestProcess): Promise<Exported> {
  const { code, out, err } = await program.ended;
  assert.equal(code, 0, err);
  assert.doesNotMatch(err, /OpenTelemetry/);
  return JSON.parse(/^exported: (.*)$/m.exec(out)![1]!) as Exported;
}

describe("with the SDK of OpenTelemetry, registered after the node has started", () => {
  it("submit, wait and run are one trace over two processes, and both count", async () => {
    const server = await PostgresServer.shared();
    try {
      const store = await server.createDatabase();
      // It traces only jobs that come after it has registered the SDK.
      await using works = script(PROGRAM, [store, "works"]);
      await works.told(/^ready$/m);
      await using submits = script(PROGRAM, [store, "submits"]);
      await submits.told(/^results: hello Ada, hello Bob$/m);
      const submitted = await exportedBy(submits);
      works.child.kill("SIGTERM");
      const worked = await exportedBy(works);

      const [order] = submitted.spans.filter(({ name }) => name === "order");
      const [ada, bob] = submitted.spans.filter(({ name }) => name === "baton.submit");
      assert.deepEqual([ada!.traceId, ada!.parent], [order!.traceId, order!.spanId]);
      assert.deepEqual([bob!.traceId, bob!.parent], ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"]);
      for (const { traceId, spanId, from } of [ada!, bob!]) {
        const spans = worked.spans.filter((span) => span.traceId === traceId);
        const one = (name: string) => spans.find((span) => span.name === name)!;
        const [wait, run, greeting] = [one("baton.wait"), one("baton.run"), one("greeting")];
        assert.deepEqual([wait.parent, run.parent, greeting.parent], [spanId, spanId, run.spanId]);
        assert.equal(one("baton.settle").parent, run.spanId);
        assert.ok(from - 1 <= wait.from && wait.from <= wait.to && wait.to <= run.from + 1, "in this order");
      }

      const attributes = {
        "messaging.system": "baton",
        "messaging.destination.name": "default",
        "baton.task": "greet",
      };
      assert.deepEqual(submitted.metrics, [
        { name: "messaging.client.sent.messages", unit: "{message}", points: [{ attributes, value: 2 }] },
      ]);
      const of = (name: string) => worked.metrics.find((metric) => metric.name === name)!;
      assert.deepEqual(of("messaging.client.consumed.messages").points, [{ attributes, value: 2 }]);
      for (const [name, more] of [
        ["baton.job.wait.duration", {}],
        ["messaging.process.duration", { "baton.outcome": "completed" }],
      ] as const) {
        const { unit, points } = of(name);
        assert.equal(unit, "s");
        assert.deepEqual(columns(points, "attributes"), [[{ ...attributes, ...more }]]);
        const { count, sum } = points[0]!.value as { count: number; sum: number };
        assert.equal(count, 2);
        assert.ok(sum > 0 && sum < 60, `${name}: ${sum} s`);
      }
    } finally {
      await server.stop();
    }
  });
});
