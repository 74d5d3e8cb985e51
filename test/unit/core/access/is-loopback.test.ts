import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { asksCallers } from "../../../../src/config/checks.ts";
import { loadSettings } from "../../../../src/config/load-settings.ts";
import { isLoopback } from "../../../../src/core/access/permissions.ts";
import { originGuard } from "../../../../src/http/origin-guard.ts";

const LOOPBACK = ["localhost", "Localhost", "localhost.", "127.0.0.1", "127.9.9.9", "127.1", "::1", "[::1]"];
const MAPPED = ["0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::FFFF:127.0.0.1", "::ffff:7f00:1"];
const OTHERS = [
  "",
  "0.0.0.0",
  "::",
  "10.0.0.1",
  "127.evil.example",
  "localhost.evil.example",
  "node-a",
  "::2",
];
const TRICKS = ["evil@127.0.0.1", "127.0.0.1/x", "::ffff:10.0.0.1", "a b", "[", "127.0.0.1#x"];

describe("a host is loopback", () => {
  it("in every spelling of localhost, 127.0.0.0/8 and ::1", () => {
    for (const host of [...LOOPBACK, ...MAPPED]) assert.ok(isLoopback(host), host);
  });

  it("only if it surely is", () => {
    for (const host of [...OTHERS, ...TRICKS]) assert.ok(!isLoopback(host), host);
  });

  it("for the Host check whenever it is for the question of credentials (DNS rebinding)", () => {
    for (const host of ["Localhost", "::ffff:127.0.0.1", ...LOOPBACK, ...MAPPED, ...OTHERS]) {
      if (host === "") continue;
      const { settings } = loadSettings({ environment: { BATON_HTTP__HOST: host } });
      if (asksCallers(settings)) continue;
      const refusal = originGuard(host, "node-a")({ host: "evil.example" }, true);
      assert.equal(refusal?.code, "FORBIDDEN", `${host} asks nobody and answers under any name`);
    }
  });
});
