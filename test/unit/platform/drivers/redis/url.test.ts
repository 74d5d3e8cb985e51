import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hasCode } from "../../../../../src/core/errors.ts";
import { redisKeys } from "../../../../../src/platform/drivers/redis/redis.ts";
import { parseRedisUrl, shownAddress } from "../../../../../src/platform/drivers/server-url.ts";

describe("the URL of Redis", () => {
  test("host, port, user, password, database and TLS are read", () => {
    assert.deepEqual(parseRedisUrl("redis://cache.example"), {
      host: "cache.example",
      port: 6_379,
      tls: false,
      username: null,
      password: null,
      database: 0,
    });
    assert.deepEqual(parseRedisUrl("rediss://ada:p%40ss%2Fw%3Ard@[::1]:7000/12"), {
      host: "::1",
      port: 7_000,
      tls: true,
      username: "ada",
      password: "p@ss/w:rd",
      database: 12,
    });
    assert.equal(parseRedisUrl("redis://:secret@h/").password, "secret");
  });

  test("it is shown without user and password", () => {
    assert.equal(shownAddress(parseRedisUrl("rediss://ada:secret@[::1]:7000/3")), "rediss://[::1]:7000/3");
    assert.equal(shownAddress(parseRedisUrl("redis://ada:secret@h")), "redis://h:6379");
  });

  const wrong: readonly (readonly [url: string, says: RegExp])[] = [
    ["postgres://ada:secret@h/db", /must be a URL such as redis:.*not postgres:/],
    ["localhost:6379", /must be a URL such as redis:/],
    ["redis://ada:sec#ret@h", /in percent/],
    ["redis://ada:sec/ret@h", /in percent|number of a database/],
    ["redis://a,b:6379", /one host/],
    ["redis://h/jobs", /no number of a database/],
    ["redis://h/0?db=secret", /takes no parameters/],
    ["redis://ada@h", /without a password/],
    ["redis://ada:sec%ZZret@h", /% as %25/],
  ];
  for (const [url, says] of wrong) {
    test(`${url} is refused with the remedy, and nothing of a password`, () => {
      assert.throws(
        () => parseRedisUrl(url),
        (error: unknown) => {
          assert.ok(hasCode(error, "BAD_CONFIG"), String(error));
          assert.equal(error.details.field, "redis");
          assert.match(error.message, says);
          assert.doesNotMatch(error.message, /sec/);
          return true;
        },
      );
    });
  }
});

describe("names on Redis", () => {
  test("keys of one cluster share a hash tag, and channels tell databases apart", () => {
    const keys = redisKeys("mine", 3);
    assert.equal(keys.key("coordinator", "leader"), "{mine}:coordinator:leader");
    assert.equal(keys.channel("coordinator", "told"), "{mine}:3:coordinator:told");
    assert.equal(redisKeys().key("x"), "{baton}:x");
  });

  for (const prefix of ["", "a b", "{a}", "a:", "-a", "a".repeat(64)]) {
    test(`the prefix ${JSON.stringify(prefix)} is refused`, () => {
      const details = { field: "redis.prefix" };
      assert.throws(() => redisKeys(prefix), { code: "BAD_CONFIG", details });
    });
  }
});
