/** Each library by its shape. With the real ones: test/adapters/transactions.ts. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type AnyTransaction,
  transactionClient,
} from "../../../src/library/transactions/transaction-client.ts";
import { within } from "../../../src/library/transactions/within.ts";

const TEXT = "SELECT $1::text, $3::text, $2::text";
const VALUES = ["one", "two", "it's $1 ?"];
const ROWS = [{ id: 1 }];

/** What each of them hands to its database, and how it answers. */
const SHAPES: Readonly<Record<string, (asked: (...args: unknown[]) => void) => unknown>> = {
  "node-postgres": (asked) => ({
    query: async (...args: unknown[]) => {
      asked(...args);
      return { rows: ROWS };
    },
  }),
  TypeORM: (asked) => ({
    query: async (...args: unknown[]) => {
      asked(...args);
      return ROWS;
    },
  }),
  Prisma: (asked) => ({
    $queryRawUnsafe: async (text: string, ...values: unknown[]) => {
      asked(text, values);
      return ROWS;
    },
  }),
  Kysely: (asked) => ({
    isTransaction: true,
    executeQuery: async ({ sql, parameters }: { sql: string; parameters: unknown }) => {
      asked(sql, parameters);
      return { rows: ROWS };
    },
  }),
  Drizzle: (asked) => ({
    rollback: () => {},
    query: {},
    transaction: () => {},
    execute: async (query: { getSQL(): { toQuery(): { sql: string; params: unknown } } }) => {
      const { sql, params } = query.getSQL().toQuery();
      asked(sql, params);
      return ROWS;
    },
  }),
};

describe("a transaction of a library", () => {
  for (const [library, shape] of Object.entries(SHAPES)) {
    it(`of ${library} gets the text and the values, and answers with rows`, async () => {
      const asked: unknown[][] = [];
      const transaction = shape((...args) => void asked.push(args)) as AnyTransaction;
      assert.deepEqual(await transactionClient(transaction).query(TEXT, VALUES), { rows: ROWS });
      assert.deepEqual(asked, [[TEXT, VALUES]]);
    });
  }

  it("of Knex gets a question mark for each value, in the order of the text", async () => {
    const asked: unknown[][] = [];
    const knex = Object.assign(() => {}, {
      isTransaction: true,
      query: () => assert.fail("it builds queries"),
      raw: async (...args: unknown[]) => {
        asked.push(args);
        return { rows: ROWS };
      },
    });
    assert.deepEqual(await transactionClient(knex).query(TEXT, VALUES), { rows: ROWS });
    assert.deepEqual(asked, [["SELECT ?::text, ?::text, ?::text", ["one", "it's $1 ?", "two"]]]);
  });

  it("is not a pool, a whole database, or something else", () => {
    const method = () => {};
    const cases: readonly [given: unknown, message: RegExp][] = [
      [{ query: method, totalCount: 1 }, /^client is a pool; give the client from pool\.connect\(\)/],
      [
        { isTransaction: false, executeQuery: method },
        /is the whole database and no transaction; give the trx/,
      ],
      [{ execute: method, transaction: method }, /give the tx of db\.transaction/],
      [{ $queryRawUnsafe: method, $transaction: method, $connect: method }, /is the whole PrismaClient/],
      [
        { query: method, createQueryRunner: method, transaction: method },
        /is a DataSource; give the manager/,
      ],
      [null, /is no transaction that is known here; give that of node-postgres, Drizzle,/],
      [{}, /or an object with query\(text, values\)$/],
      ["postgres://", /is no transaction that is known here/],
    ];
    for (const [given, message] of cases)
      assert.throws(() => transactionClient(given as AnyTransaction), {
        code: "BAD_REQUEST",
        details: { field: "client" },
        message,
      });
  });

  it("goes with each submit, whatever the other options", () => {
    const calls: unknown[][] = [];
    const node = {
      submit: (...args: unknown[]) => calls.push(args),
      submitMany: (...args: unknown[]) => calls.push(args),
    };
    const tx = within(node, { query: async () => ROWS });
    tx.submit("mail", 1, { priority: 3 });
    tx.submitMany([["mail", 1]]);
    const client = (calls[0] as [unknown, unknown, { client: { query: unknown } }])[2].client;
    assert.equal(typeof client.query, "function");
    assert.deepEqual(calls, [
      ["mail", 1, { priority: 3, client }],
      [[["mail", 1]], { client }],
    ]);
  });
});
