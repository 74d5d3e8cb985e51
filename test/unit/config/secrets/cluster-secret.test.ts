import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import { type LoadOptions, loadSettings } from "../../../../src/config/load-settings.ts";
import {
  insecurities,
  machineSecretFile,
  openClusterSecret,
  secretAdvice,
  type SecretSettings,
  weakness,
} from "../../../../src/config/secrets/cluster-secret.ts";
import type { Settings } from "../../../../src/config/settings.ts";
import { newSecret } from "../../../../src/platform/random.ts";
import { adviceText } from "../../../../src/config/mistake.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const secretMistakes = (of: SecretSettings): string[] => secretAdvice(of).map(adviceText);

const root = suiteDirectory();

let home: Record<string, string> = {};
let count = 0;
beforeEach(() => {
  const directory = join(root, String(count++));
  mkdirSync(directory);
  home = { HOME: directory, XDG_STATE_HOME: directory, LOCALAPPDATA: directory };
});

const STRONG = newSecret();
const HERE = "a=http://127.0.0.1:8420,b=http://127.0.0.1:8421";
const OPEN = "a=http://10.0.0.1:8420,b=http://10.0.0.2:8420";

function settings(environment: Record<string, string>, flags: LoadOptions["flags"] = {}): Settings {
  return loadSettings({ cwd: "/nowhere", environment: { BATON_NAME: "a", ...environment }, flags }).settings;
}

describe("the strength of a secret", () => {
  it("suffices when it was made by us", () => {
    for (let i = 0; i < 200; i++) assert.equal(weakness(newSecret()), null);
    assert.match(newSecret(), /^[A-Za-z0-9_-]{43}$/);
  });

  it("does not suffice when it is known to everybody, short, or made of little", () => {
    const all = "changeme Change-Me secret password cluster_pass default_token admin";
    for (const known of all.split(" ")) assert.equal(weakness(known), "is known to everybody", known);
    assert.equal(weakness(STRONG.slice(0, 31)), "is too short: 31 characters, and 32 are needed");
    assert.equal(weakness("ab".repeat(20)), "has too few different characters");
    assert.equal(weakness("cluster_pass".repeat(4)), "is a repetition");
  });

  it("never suffices below 32 characters", () => {
    fc.assert(fc.property(fc.string({ maxLength: 31 }), (text) => assert.notEqual(weakness(text), null)));
  });
});

describe("the start of a cluster of peers", () => {
  it("needs a secret when others can reach it, and says the line to type", () => {
    const [mistake, ...more] = secretMistakes(settings({ BATON_NODES: OPEN }));
    assert.deepEqual(more, []);
    assert.match(
      mistake!,
      /^cluster\.secret is missing, and http\.host 10\.0\.0\.1 can be reached from elsewhere; type `baton secret create --file /,
    );
    assert.throws(() => openClusterSecret(settings({ BATON_NODES: OPEN }), home), { code: "BAD_CONFIG" });
  });

  it("is refused with a short or well-known one, and with a bad one of two", () => {
    for (const secret of ["changeme", STRONG.slice(0, 20), `${STRONG},changeme`]) {
      const [mistake] = secretMistakes(settings({ BATON_NODES: OPEN, BATON_SECRET: secret }));
      assert.match(mistake!, /^cluster\.secret is (?:known to everybody|too short)/);
      assert.ok(!mistake!.includes(STRONG.slice(0, 20)));
    }
  });

  it("takes a good one, or two of them, and no third", () => {
    const second = newSecret();
    for (const secret of [`${STRONG},${second}`, `${STRONG}\n${second}\n`, ` ${STRONG} , ${second} `]) {
      const opened = openClusterSecret(settings({ BATON_NODES: OPEN, BATON_SECRET: secret }), home);
      assert.deepEqual(opened, { secrets: [STRONG, second], from: "settings", warnings: [] });
    }
    const three = [STRONG, second, newSecret()].join(",");
    assert.deepEqual(secretMistakes(settings({ BATON_NODES: OPEN, BATON_SECRET: three })), [
      "cluster.secret has 3 secrets; it may have two, the new one first",
    ]);
  });

  it("goes without with --insecure, and says so loudly", () => {
    const open = settings({ BATON_NODES: OPEN }, { "cluster.insecure": "true" });
    assert.deepEqual(secretMistakes(open), []);
    const warning =
      "INSECURE: cluster.secret is missing, and http.host 10.0.0.1 can be reached from elsewhere: whoever reaches it can act as a node";
    assert.deepEqual(insecurities(open), [warning]);
    const opened = openClusterSecret(open, home);
    assert.deepEqual([opened?.from, opened?.warnings], ["nothing", [warning]]);
    const fine = settings({ BATON_NODES: OPEN, BATON_SECRET: STRONG }, { "cluster.insecure": "true" });
    assert.deepEqual(insecurities(fine), []);
  });

  it("asks for none where there are no peers", () => {
    for (const store of ["postgres://db/x", "sqlite"]) {
      const alone = settings({ BATON_STORE: store, BATON_HTTP__HOST: "0.0.0.0" });
      assert.deepEqual(secretMistakes(alone), []);
      assert.equal(openClusterSecret(alone, home), null);
    }
  });
});

describe("a secret made of user and password", () => {
  const manager = (addr: string, pass: string, user = "cluster_user"): Settings =>
    settings({ BATON_MANAGER__ADDR: addr, BATON_MANAGER__USER: user, BATON_MANAGER__PASS: pass });

  it("is the same on every node that has both, and another with another user or password", () => {
    const secret = (user: string, pass: string): string =>
      openClusterSecret(manager("localhost:2222", pass, user), home)!.secrets[0]!;
    const made = secret("user-1", "pass-1");
    assert.match(made, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(secret("user-1", "pass-1"), made);
    assert.equal(
      new Set([made, secret("user-2", "pass-1"), secret("user-1", "pass-2"), secret("user-1p", "ass-1")])
        .size,
      4,
    );
  });

  it("will not do beyond the machine with a password that everybody knows or can guess", () => {
    for (const addr of ["0.0.0.0:2222", ":2222", "10.0.0.1:2222", "node-a.internal:2222"]) {
      const [mistake] = secretMistakes(manager(addr, "cluster_pass"));
      assert.match(
        mistake!,
        /^there is no cluster\.secret, manager\.pass is known to everybody, and manager\.addr /,
      );
    }
    assert.match(
      secretMistakes(manager(":2222", "a-good-one-but-short"))[0]!,
      /manager\.pass is too short: 20/,
    );
    assert.deepEqual(secretMistakes(manager(":2222", STRONG)), []);
    assert.equal(openClusterSecret(manager("127.0.0.1:2222", "cluster_pass"), home)!.from, "manager");
  });

  it("leaves the join server with a password that must not be well known either", () => {
    const open = (pass: string): string[] =>
      secretMistakes(
        settings({
          BATON_MANAGER__ADDR: ":2222",
          BATON_MANAGER__USER: "user",
          BATON_MANAGER__PASS: pass,
          BATON_SECRET: STRONG,
        }),
      );
    assert.match(open("cluster_pass")[0]!, /^manager\.pass is known to everybody, and manager\.addr :2222 /);
    assert.deepEqual(open("a-good-one-but-short"), []);
  });
});

describe("the secret of a machine", { skip: process.platform === "win32" }, () => {
  const open = (): string => openClusterSecret(settings({ BATON_NODES: HERE }), home)!.secrets[0]!;

  it("is made once, kept for its user alone, and the same for all nodes", () => {
    const secret = open();
    assert.equal(weakness(secret), null);
    assert.equal(open(), secret);
    const file = machineSecretFile(home);
    assert.equal(readFileSync(file, "utf8").trim(), secret);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(statSync(join(file, "..")).mode & 0o777, 0o700);
  });

  it("is not believed when others could have read, written or planted it", () => {
    open();
    const file = machineSecretFile(home);
    chmodSync(file, 0o644);
    assert.throws(open, /is open to other users; remove it, or set BATON_SECRET/);
    rmSync(file);
    writeFileSync(`${file}.other`, `${STRONG}\n`, { mode: 0o600 });
    symlinkSync(`${file}.other`, file);
    assert.throws(open, /is a link/);
    rmSync(file);
    writeFileSync(file, "", { mode: 0o600 });
    assert.throws(open, /is empty/);
  });

  it("that cannot be kept is told with the remedy", () => {
    writeFileSync(join(home["XDG_STATE_HOME"]!, "baton"), "in the way");
    assert.throws(open, { code: "BAD_CONFIG", message: /cannot be read or kept .*set BATON_SECRET/ });
  });
});
