import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { BatonClient } from "../../src/client/baton-client.ts";
import { runSample } from "../support/console-samples.ts";
import { freePort } from "../support/free-port.ts";
import { allPages, blocksOf } from "../support/markdown.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { script, type TestProcess } from "../support/process.ts";
import { suiteDirectory } from "../support/node-cleanup.ts";
import { column } from "../support/columns.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const bin = join(root, "bin", "baton.mjs");
const directory = suiteDirectory();

/** What `npm start` runs, without the shell's part. */
function startArguments(): string[] {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  const [, args] = /^exec node bin\/baton\.mjs (.*)$/.exec(manifest.scripts.start) ?? [];
  assert.ok(args, "npm start runs bin/baton.mjs");
  return args.split(" ");
}

/** The `console` samples of all pages, but for those that say why they are not run. */
const allSamples = allPages()
  // template.test.ts has the project of that page.
  .filter(({ path }) => path !== "docs/getting-started.md")
  .flatMap((page) =>
    blocksOf(page)
      .filter(({ language }) => language === "console")
      .map((block) => ({ page, block })),
  );
const samples = allSamples.filter(({ block }) => block.notRun === null);
/** More of them, and the pages are no longer held to what happens. */
const NOT_RUN_MAX = 4;
const QUIET = ["--name", "examples", "--port", "0", "--log-level", "warn"];

describe("the tasks in examples/", () => {
  // One declares a schedule, which would stand in each sample; examples-applications.test.ts runs it.
  const folders = globSync("examples/*/tasks", { cwd: root, exclude: ["examples/nightly-report"] }).sort();
  let node: TestProcess;
  let client: BatonClient;

  before(async () => {
    const tasks = folders.flatMap((folder) => ["--tasks", folder]);
    const args = ["start", ...tasks, ...QUIET, "--data", join(directory, "tasks")];
    node = script(bin, args, { cwd: root });
    const [, url] = await node.told(/listening on (\S+)/);
    client = new BatonClient({ url: url! });
  });
  after(async () => {
    await client?.close();
    await node?.[Symbol.asyncDispose]();
  });

  async function run(task: string, payload: unknown) {
    const { job_id } = await client.submit({ task, payload, max_attempts: 1 });
    return client.wait(job_id, { timeoutMs: 20_000 });
  }

  it("can run nearly every sample", () => {
    assert.ok(samples.length >= 7, `${samples.length} samples`);
    assert.ok(allSamples.length - samples.length <= NOT_RUN_MAX);
  });

  it("are all loaded", async () => {
    const modules = folders.map((folder) => `${folder}/*.ts`);
    const files = globSync(modules, { cwd: root }).map((file) => basename(file, ".ts"));
    const { tasks } = await client.tasks();
    assert.deepEqual(column(tasks, "name"), files.sort());
  });

  it("hello greets, by name or without one", async () => {
    assert.equal((await run("hello", { name: "Ada" })).result, "Hello, Ada!");
    assert.equal((await run("hello", null)).result, "Hello, world!");
  });

  it("send-mail fails for a host that cannot be, and import-orders counts", async () => {
    const mail = (to: string) => run("send-mail", { to, subject: "Your order", urgent: true });
    assert.deepEqual((await mail("ada@example.org")).result, { accepted: ["ada@example.org"] });
    const { job } = await mail("ada@gone.invalid");
    assert.deepEqual([job.status, job.error?.message], ["failed", '550 no such host: "gone.invalid"']);
    assert.deepEqual((await run("import-orders", { shop: "oslo", pages: 1 })).result, {
      shop: "oslo",
      orders: 12,
    });
  });

  it("identify-language finds the language of a text, and says how sure it is", async () => {
    const { result } = await run("identify-language", {
      text: "Der frühe Vogel fängt den Wurm.",
      top: 2,
    });
    const { language, reliable, scores } = result as {
      language: string;
      reliable: boolean;
      scores: Record<string, number>;
    };
    assert.equal(language, "de");
    assert.equal(reliable, true);
    assert.equal(Object.keys(scores).length, 2);
    assert.equal(Object.keys(scores)[0], "de");
  });

  it("identify-language admits that it does not know", async () => {
    const { result } = await run("identify-language", { text: "12345 67890" });
    assert.deepEqual(result, { language: null, reliable: false, scores: {}, characters: 11 });
  });

  it("identify-language takes a long text in slices, with progress and a log", async () => {
    const text = "La rapide renarde brune saute par-dessus le chien paresseux. ".repeat(2_000);
    const { job, result } = await run("identify-language", { text });
    assert.equal((result as { language: string }).language, "fr");
    assert.equal(job.progress, 100);
    const { logs } = await client.logs(job.job_id);
    assert.deepEqual(column(logs, "message"), [`${text.length} characters: fr`]);
  });

  it("identify-language refuses a payload at submit and names the field", async () => {
    const refused = client.submit({ task: "identify-language", payload: { text: "" } });
    await assert.rejects(refused, {
      code: "BAD_PAYLOAD",
      status: 400,
      message: /payload\.text: must not be/,
    });
  });

  it("slow-count counts, and reports on the way", async () => {
    const { job, result } = await run("slow-count", { to: 3, everyMs: 1 });
    assert.equal(result, 3);
    assert.equal(job.progress_message, "3 of 3");
    const { logs } = await client.logs(job.job_id);
    assert.deepEqual(
      logs.map(({ level, message }) => `${level} ${message}`),
      ["info attempt 1: counting to 3", "debug 1", "debug 2", "debug 3"],
    );
  });

  it("slow-count stops when it is cancelled", async () => {
    const { job_id } = await client.submit({ task: "slow-count", payload: { to: 1_000, everyMs: 60_000 } });
    for await (const event of client.followLogs(job_id)) if (event.event === "log") break;
    await client.cancel(job_id, "seen enough");
    const { job } = await client.wait(job_id, { timeoutMs: 10_000 });
    assert.equal(job.status, "cancelled");
    assert.equal(job.error?.message, "seen enough");
  });

  it("crunch counts primes on a thread, and the node answers meanwhile", async () => {
    const { job_id } = await client.submit({ task: "crunch", payload: { below: 3_000_000 } });
    for await (const event of client.followLogs(job_id)) if (event.event === "progress") break;
    assert.equal((await client.health()).status, "ok");
    assert.equal((await client.job(job_id)).status, "processing");
    await client.cancel(job_id);
    assert.deepEqual((await run("crunch", { below: 100 })).result, { below: 100, primes: 25 });
  });

  it("languages/submit.ts identifies its samples, one line each", async () => {
    const environment = { BATON_URL: await address() };
    await using submit = script(join(root, "examples/languages/submit.ts"), [], { cwd: root, environment });
    const { code, out, err } = await submit.ended;
    assert.equal(code, 0, err);
    assert.deepEqual(
      out
        .trim()
        .split("\n")
        .map((line) => line.slice(0, 2)),
      ["en", "de", "fr", "es", "it", "ja"],
    );
  });

  it("languages/submit.ts takes texts of one's own", async () => {
    const args = ["Guten Morgen, liebe Leute", "Buenos días, queridos amigos"];
    const environment = { BATON_URL: await address() };
    await using submit = script(join(root, "examples/languages/submit.ts"), args, { cwd: root, environment });
    const { code, out, err } = await submit.ended;
    assert.equal(code, 0, err);
    assert.match(out, /^de .* Guten Morgen, liebe Leute\nes .* Buenos días, queridos amigos\n$/);
  });

  for (const { page, block } of samples) {
    it(`prints what ${page.path}:${block.line} shows`, async () => {
      const url = await address();
      const names = new Map([
        ["http://127.0.0.1:8420", url],
        ["/var/lib/baton", join(directory, "tasks")],
      ]);
      await runSample(block, { cwd: root, names, environment: { BATON_URL: url, BATON_HTTP__PORT: "0" } });
      for (const { name } of (await client.schedules()).schedules) await client.removeSchedule(name);
    });
  }

  async function address(): Promise<string> {
    const [, url] = await node.told(/listening on (\S+)/);
    return url!;
  }
});

describe("npm start", () => {
  it("prints a command that works as it stands", async () => {
    // The first free port from 8420 on may be another's before all three nodes listen.
    const args = [...startArguments(), "--port", String(await freePort())];
    await using demo = script(bin, args, { cwd: root });
    const [, command] = await demo.told(/^ *submit +node bin\/baton\.mjs (.*)$/m);
    const submitting = [...command!.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
    await using submit = script(bin, submitting, { cwd: root });
    const { code, out, err } = await submit.ended;
    assert.equal(code, 0, err);
    assert.equal((JSON.parse(out) as { language: string }).language, "de");
    assert.equal((await demo.terminate()).code, 0);
  });
});

describe("examples/embedded", () => {
  it("runs a node inside a program, and ends by itself", async () => {
    const environment = { DATABASE_URL: `sqlite:${join(directory, "embedded.db")}` };
    await using program = script(join(root, "examples/embedded/index.ts"), [], { cwd: root, environment });
    const { code, out, err } = await program.ended;
    assert.equal(code, 0, err);
    assert.deepEqual(out.trimEnd().split("\n").toSorted(), [
      "Ada pays 17.49",
      "invoice is done",
      "invoice: Bob has bought nothing",
      "no invoice: Bob has bought nothing",
      "total is done",
    ]);
  });
});

describe("examples/postgres-transaction", () => {
  it("stores an order with its job, or neither", async () => {
    const server = await PostgresServer.shared();
    try {
      const url = await server.createDatabase();
      const environment = { DATABASE_URL: url, BATON_DATA: join(directory, "transaction") };
      const file = join(root, "examples/postgres-transaction/index.ts");
      await using program = script(file, [], { cwd: root, environment });
      const { code, out, err } = await program.ended;
      assert.equal(code, 0, err);
      const [ada, bob, eve] = out.trimEnd().split("\n");
      assert.equal(ada, "Ada gets a receipt for 17.49");
      assert.match(bob!, /^Bob has no order and no receipt: .*orders_cents_check/);
      assert.equal(eve, "Eve gets a receipt for 5");
      const orders = await server.query("SELECT customer FROM orders ORDER BY 1", url);
      assert.deepEqual(orders, [{ customer: "Ada" }, { customer: "Eve" }]);
      const jobs = await server.query("SELECT count(*)::int AS n FROM baton.job", url);
      assert.deepEqual(jobs, [{ n: 2 }]);
    } finally {
      await server.stop();
    }
  });
});

describe("the examples of a migration", () => {
  it("examples/from-bullmq submits, waits and delays", async () => {
    const environment = { DATABASE_URL: `sqlite:${join(directory, "from-bullmq.db")}` };
    const file = join(root, "examples/from-bullmq/index.ts");
    await using program = script(file, [], { cwd: root, environment });
    const { code, out, err } = await program.ended;
    assert.equal(code, 0, err);
    assert.deepEqual(out.trimEnd().split("\n").toSorted(), [
      "Bob waits: scheduled",
      "mail: sent to Ada",
      "the same job: true",
    ]);
  });

  it("examples/from-pg-boss does too, and submits in a transaction", async () => {
    const server = await PostgresServer.shared();
    try {
      const environment = {
        DATABASE_URL: await server.createDatabase(),
        BATON_DATA: join(directory, "from-pg-boss"),
      };
      const file = join(root, "examples/from-pg-boss/index.ts");
      await using program = script(file, [], { cwd: root, environment });
      const { code, out, err } = await program.ended;
      assert.equal(code, 0, err);
      assert.deepEqual(out.trimEnd().split("\n"), [
        "Ada has a receipt",
        "Bob waits: scheduled",
        "Eve has a receipt",
      ]);
    } finally {
      await server.stop();
    }
  });
});
