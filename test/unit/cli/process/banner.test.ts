import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";
import { describe, it } from "node:test";
import { showBanner, type Started } from "../../../../src/cli/process/banner.ts";
import { systemClock } from "../../../../src/platform/clock.ts";

const SETTINGS: Started["settings"] = {
  name: "node-1",
  data: "/srv/app/.baton",
  store: "sqlite",
  roles: ["gateway", "worker"],
  redis: { url: "" },
  etcd: { url: "" },
};

function banner(started: Partial<Started>, isTTY: boolean): string {
  let text = "";
  const err = new Writable({
    write(part: Buffer, _encoding, done) {
      text += part.toString();
      done();
    },
  });
  // Looks like a terminal without colours.
  Object.assign(err, { isTTY, getColorDepth: () => 1 });
  const terminal = {
    out: err,
    err,
    input: Readable.from([]),
    environment: {},
    cwd: "/srv/app",
    clock: systemClock,
  };
  showBanner(terminal, {
    settings: SETTINGS,
    url: "http://127.0.0.1:8420",
    tasks: [
      { name: "languages", hasSchema: true },
      { name: "hello", hasSchema: false },
    ],
    guarantees: { name: "sqlite", durability: "power loss", shared: false, keepsTokenFile: false },
    peers: null,
    access: null,
    warnings: [],
    ...started,
  });
  return text;
}

describe("the banner of a started node", () => {
  it("tells a person where the node is, what it promises and what to try", () => {
    const text = banner({}, true);
    assert.match(text, /^ {2}url +http:\/\/127\.0\.0\.1:8420 /m);
    assert.match(text, /^ {2}store +sqlite in \.baton: acknowledged jobs survive crashes and power loss$/m);
    assert.match(text, /^ {2}tasks +languages, hello$/m);
    assert.match(text, /^ {2}try +baton submit hello '\{\}' --wait$/m);
    assert.match(text, /curl http:\/\/127\.0\.0\.1:8420\/jobs .* -d '\{"task":"hello","payload":\{\}\}'$/m);
  });

  it("names the database that nodes share", () => {
    const text = banner(
      {
        settings: { ...SETTINGS, store: "postgres://me:secret@db/x" },
        guarantees: { name: "postgres", durability: "power loss", shared: true, keepsTokenFile: false },
      },
      true,
    );
    assert.match(
      text,
      /^ {2}store +postgres:\/\/me:\*\*\*@db\/x: acknowledged jobs survive crashes and power loss$/m,
    );
  });

  it("names what stands beside the database, and what for", () => {
    assert.doesNotMatch(banner({}, true), /redis|etcd/);
    const redis = banner({ settings: { ...SETTINGS, redis: { url: "redis://me:secret@r" } } }, true);
    assert.match(redis, /^ {2}redis +redis:\/\/me:\*\*\*@r: elects, carries messages and jobs$/m);
    const etcd = banner(
      { settings: { ...SETTINGS, etcd: { url: "http://me:secret@a:2379,http://b:2379" } } },
      true,
    );
    assert.match(etcd, /^ {2}etcd +http:\/\/me:\*\*\*@a:2379,http:\/\/b:2379: elects the leader$/m);
  });

  it("names the other nodes, and says before all else what must not be overlooked", () => {
    const over = { peers: "with node-2", warnings: ["INSECURE: no secret"] };
    assert.match(banner(over, true), /^WARNING INSECURE: no secret\n[^]*^ {2}cluster +with node-2$/m);
    assert.match(banner(over, false), /^WARNING INSECURE: no secret\nbaton is listening/);
  });

  it("is short where nobody looks", () => {
    assert.equal(
      banner({ url: "http://127.0.0.1:9000" }, false),
      "baton is listening on http://127.0.0.1:9000\ntry: baton submit hello '{}' --wait --url http://127.0.0.1:9000\n",
    );
  });

  it("tries no task where callers are not served", () => {
    const text = banner({ settings: { ...SETTINGS, roles: ["worker"] } }, true);
    assert.match(text, /^ {2}try +baton status$/m);
    assert.doesNotMatch(text, /submit/);
  });

  it("tries no task when there is none, and says that memory keeps nothing", () => {
    const text = banner(
      {
        tasks: [],
        guarantees: { name: "memory", durability: "nothing", shared: false, keepsTokenFile: false },
      },
      true,
    );
    assert.match(text, /^ {2}store +memory: jobs are gone when this process ends$/m);
    assert.match(text, /^ {2}tasks +none; put modules into a directory and start with --tasks DIR$/m);
    assert.match(text, /^ {2}try +baton status$/m);
  });
});
