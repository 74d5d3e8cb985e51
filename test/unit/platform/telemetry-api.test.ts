import assert from "node:assert/strict";
import * as api from "@opentelemetry/api";
import { afterEach, describe, it } from "node:test";
import { openTelemetry as handOver } from "../../../src/library/otel.ts";
import { openTelemetry, type Tracing } from "../../../src/platform/tracing.ts";
import { MemoryTracer } from "../../support/memory-tracer.ts";

const KEY = Symbol.for("opentelemetry.js.api.1");
const NEXT_KEY = Symbol.for("opentelemetry.js.api.2");
const registry = globalThis as { [KEY]?: unknown; [NEXT_KEY]?: unknown };

function traced(telemetry?: { readonly api: object }): Tracing & { readonly said: readonly string[] } {
  const said: string[] = [];
  const tracing = openTelemetry("1.0.0", {
    ...(telemetry && { telemetry }),
    warn: (message) => void said.push(message),
  });
  return Object.assign(Object.create(tracing) as Tracing, { said });
}

afterEach(() => {
  delete registry[KEY];
  delete registry[NEXT_KEY];
});

describe("the API of OpenTelemetry", () => {
  it("nothing is said where no SDK is registered, or only a part of it that is not used", () => {
    const tracing = traced();
    assert.deepEqual([tracing.on, tracing.meter(), tracing.active()], [false, null, null]);
    registry[KEY] = { version: "1.0.0", diag: {} };
    assert.deepEqual([tracing.on, tracing.meter(), tracing.active()], [false, null, null]);
    assert.deepEqual(tracing.said, []);
  });

  it("an SDK that is registered with an older copy is named once, with what to do", () => {
    const tracing = traced();
    registry[KEY] = { version: "1.0.0", trace: new MemoryTracer(), metrics: {} };
    for (let asked = 0; asked < 3; asked++) assert.deepEqual([tracing.on, tracing.meter()], [false, null]);
    assert.equal(tracing.said.length, 1);
    assert.match(tracing.said[0]!, /gets no spans and no metrics of Baton: .*@opentelemetry\/api 1\.0\.0,/);
    assert.match(tracing.said[0]!, /npm ls @opentelemetry\/api .*telemetry: openTelemetry\(api\)/);
  });

  it("so is another major version", () => {
    const tracing = traced();
    registry[NEXT_KEY] = { version: "2.0.0" };
    assert.deepEqual([tracing.on, tracing.on, tracing.said.length], [false, false, 1]);
    assert.match(tracing.said[0]!, /version 2 of @opentelemetry\/api/);
  });

  it("the one that the application hands over is used, whatever else is registered", () => {
    registry[KEY] = { version: "1.0.0", trace: {} };
    const theirs = new MemoryTracer();
    const meter = { theirs: true };
    const tracing = traced(
      handOver({
        ...api,
        trace: Object.assign(Object.create(api.trace) as object, { getTracerProvider: () => theirs }),
        metrics: { getMeterProvider: () => ({ getMeter: () => meter }) },
      }),
    );
    assert.equal(tracing.on, true);
    tracing.start("of ours", { kind: "internal", parent: null, attributes: {} }).end();
    assert.equal(theirs.spans[0]?.name, "of ours");
    assert.equal(tracing.meter(), meter);
    assert.deepEqual(tracing.said, []);
  });

  it("what is handed over must be the whole API", () => {
    for (const wrong of [undefined, {}, { trace: api.trace }, api.trace])
      assert.throws(() => handOver(wrong as never), { code: "BAD_CONFIG", message: /^"api" has no \w+; / });
  });
});
