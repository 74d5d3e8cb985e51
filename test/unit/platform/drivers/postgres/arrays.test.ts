import assert from "node:assert/strict";
import { after, test } from "node:test";
import * as fc from "../../../../support/fast-check.ts";
import { Client } from "pg";
import { float8s, int4s, int8s, texts, uuids } from "../../../../../src/platform/drivers/postgres/arrays.ts";
import { PostgresServer } from "../../../../support/postgres-server.ts";

const server = await PostgresServer.shared();
const client = new Client({ connectionString: server.url("postgres") });
await client.connect();
after(async () => {
  await client.end();
  await server.stop();
});

const list = <T>(of: fc.Arbitrary<T>) => fc.array(fc.option(of), { maxLength: 20 });

async function understood(type: string, array: Buffer): Promise<unknown> {
  const { rows } = await client.query(`SELECT coalesce(array_to_json($1::${type}[]), '[]')::text AS json`, [
    array,
  ]);
  return JSON.parse((rows[0] as { json: string }).json);
}

const ROUND_TRIPS = [
  { type: "int", values: list(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })), encode: int4s },
  { type: "bigint", values: list(fc.maxSafeInteger()), encode: int8s },
  { type: "float8", values: list(fc.double({ min: 0.001, max: 1, noNaN: true })), encode: float8s },
  {
    type: "text",
    values: list(fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", ""))),
    encode: texts,
  },
] as const;

for (const { type, values, encode } of ROUND_TRIPS) {
  void test(`the server reads every array of ${type} as it was meant, nulls and the empty one included`, () =>
    fc.assert(
      fc.asyncProperty(values as fc.Arbitrary<(string | number | null)[]>, async (given) => {
        assert.deepEqual(await understood(type, (encode as (values: unknown[]) => Buffer)(given)), given);
      }),
      { numRuns: 50, seed: 1 },
    ));
}

void test("the server reads every array of uuids as it was meant", () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.uuid(), { maxLength: 20 }), async (given) => {
      assert.deepEqual(await understood("uuid", uuids(given)), given);
    }),
    { numRuns: 50, seed: 1 },
  ));
