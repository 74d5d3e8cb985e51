import assert from "node:assert/strict";
import { it } from "node:test";
import { passwordHashes } from "../../../src/access/passwords.ts";
import { SYSTEM } from "../../../src/platform/platform.ts";

it("a password is hashed by scrypt with 32 MiB, and only the same one matches, however it is spelled", async () => {
  const passwords = passwordHashes(SYSTEM);
  const hash = await passwords.hash("a long caf\u00e9 password");
  assert.match(hash, /^scrypt\$15\$8\$3\$/);
  const matches = ["a long cafe\u0301 password", "a long cafe password"].map((text) =>
    passwords.matches(text, hash),
  );
  assert.deepEqual(await Promise.all(matches), [true, false]);
});
