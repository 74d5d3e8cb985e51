/**
 * What the compiler says about programs that embed a node: `tsc` checks this file, and each `@ts-expect-error` fails it when nothing is
 * wrong with the next line. Nothing in here is run but the last test.
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { z } from "zod";
import { type Baton, createNode, defineTask, type JobHandle, type JsonOf } from "../../../src/index.ts";

/** True unless one of them can be what the other cannot. */
type Same<A, B> = [A, B] extends [B, A] ? true : false;
/** Fails to compile unless both are the same type. */
const same = <A, B>(yes: Same<A, B>): boolean => yes;

const charge = defineTask({
  name: "charge",
  schema: z.object({ order: z.coerce.number<string>(), note: z.string().default("") }),
  run: ({ order, note }) => {
    same<typeof order, number>(true);
    same<typeof note, string>(true);
    return {
      id: `${order}`,
      at: new Date(0),
      tags: new Set<string>(),
      left: undefined as number | undefined,
    };
  },
});
const byParameters = defineTask<{ order: number }, string>({ name: "plain", run: ({ order }) => `${order}` });
const byHandler = defineTask({ name: "handler", run: async (order: number) => [order] });
const anything = defineTask({ name: "anything", run: () => {} });

export async function embedded(baton: Baton): Promise<void> {
  const job = await baton.submit(charge, { order: "7" }, { delay: "5m", runAt: undefined, priority: 1 });
  const result = await job.result();
  same<typeof result.id, string>(true);
  same<typeof result.at, string>(true);
  same<typeof result.left, number | undefined>(true);
  same<Awaited<ReturnType<JobHandle<string[]>["result"]>>, string[]>(true);

  const plain = await baton.submit(byParameters, { order: 7 });
  same<typeof plain, JobHandle<string>>(true);
  const listed = await baton.submit(byHandler, 7);
  same<typeof listed, JobHandle<number[]>>(true);
  const nothing = await baton.submit(anything, null);
  same<typeof nothing, JobHandle<null>>(true);
  const named = await baton.submit<{ n: number }>("elsewhere", { any: 1 });
  same<typeof named, JobHandle<{ n: number }>>(true);

  const many = await baton.submitMany([
    [charge, { order: "7" }],
    [byHandler, 7, { priority: 3 }],
  ]);
  same<(typeof many)[1], JobHandle<number[]>>(true);
  await baton.submitMany([1, 2].map((n) => [byHandler, n] as const));

  // @ts-expect-error: the payload has no such form
  await baton.submit(charge, { order: 7 });
  // @ts-expect-error: a number is no payload of this task
  await baton.submit(charge, 42);
  // @ts-expect-error: a payload is needed
  await baton.submit(charge);
  // @ts-expect-error: the type parameters say what the payload is
  await baton.submit(byParameters, { order: "7" });
  // @ts-expect-error: the handler says what the payload is
  await baton.submit(byHandler, "7");
  await baton.submitMany([
    [charge, { order: "7" }],
    // @ts-expect-error: one wrong payload among many
    [byHandler, "7"],
  ]);
  // @ts-expect-error: no option has this name
  await baton.submit(byHandler, 7, { dealy: "5m" });
  // @ts-expect-error: a duration has a unit
  await baton.submit(byHandler, 7, { delay: "5 minutes" });
  // @ts-expect-error: no event has this name
  baton.on("job.fialed", () => {});
  // @ts-expect-error: a result is typed
  (await listed.result()).toUpperCase();
}

export const parent = defineTask({
  name: "parent",
  run: async (_: null, { call, submit }) => {
    const result = await call(charge, { order: "7" });
    same<typeof result.at, string>(true);
    const job = await submit(byHandler, 7);
    same<typeof job, JobHandle<number[]>>(true);
    // @ts-expect-error: the payload has no such form
    await call(charge, { order: 7 });
    // @ts-expect-error: the handler says what the payload is
    await submit(byHandler, "7");
  },
});

export async function options(): Promise<void> {
  await createNode({
    worker: { concurrency: 1, lease: "10s" },
    http: false,
    redis: "redis://here",
    tasks: [charge],
  });
  // @ts-expect-error: did you mean concurrency?
  await createNode({ worker: { conurrency: 1 } });
  // @ts-expect-error: it is a number
  await createNode({ worker: { concurrency: "1" } });
  // @ts-expect-error: did you mean store?
  await createNode({ stroe: "memory" });
  // @ts-expect-error: a duration has a unit
  await createNode({ drain: { timeout: "10" } });
  // @ts-expect-error: a handler takes what its schema makes
  defineTask({ name: "wrong", schema: z.object({ n: z.number() }), run: ({ m }) => m });
}

describe("the JSON type of a value", () => {
  it("is what arrives", () => {
    interface Sent {
      readonly at: Date;
      readonly maybe?: Date;
      readonly often: readonly (Date | null)[];
      readonly pair: [bigint | number, undefined];
      readonly run: () => void;
      readonly any: any;
      readonly unknown: unknown;
      readonly nested: { readonly map: Map<string, number> };
    }
    same<JsonOf<Sent>["at"], string>(true);
    same<JsonOf<Sent>["maybe"], string | undefined>(true);
    same<JsonOf<Sent>["often"], readonly (string | null)[]>(true);
    same<JsonOf<Sent>["pair"], [number, null]>(true);
    same<"run" extends keyof JsonOf<Sent> ? true : false, false>(true);
    same<JsonOf<Sent>["unknown"], unknown>(true);
    same<JsonOf<void>, null>(true);
    const sent = { at: new Date(0), maybe: undefined, list: [undefined, () => {}] };
    const arrived = JSON.parse(JSON.stringify(sent)) as JsonOf<typeof sent>;
    assert.deepEqual(arrived, { at: "1970-01-01T00:00:00.000Z", list: [null, null] });
  });
});
