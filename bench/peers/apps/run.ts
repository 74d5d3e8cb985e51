// Runs the small application on each library: its own test, then its server with one order, on PostgreSQL and Redis.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { databaseName, startServers } from "../src/servers.ts";
import { sleep } from "../src/util.ts";

const APPS = {
  baton: join(import.meta.dirname, "../../../examples/orders"),
  "pg-boss": join(import.meta.dirname, "pg-boss"),
  bullmq: join(import.meta.dirname, "bullmq"),
};
const WAIT_MS = 120_000;

const servers = await startServers();
try {
  await servers.createDatabases(Object.keys(APPS));
  for (const [name, directory] of Object.entries(APPS)) {
    const { host, port } = servers.context.redis.everysec;
    const url = servers.context.pgUrl.replace(/[^/]*$/, databaseName(name));
    const environment = { DATABASE_URL: url, REDIS_URL: `redis://${host}:${port}`, PORT: "0" };
    await runTest(directory, environment);
    await placeOrder(directory, environment);
    console.log(`${name}: ${linesOf(directory)} lines, works`);
  }
} finally {
  await servers.stop();
}

function start(args: string[], environment: Record<string, string>) {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...environment } });
  const program = { child, output: "" };
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text: Buffer) => (program.output += text.toString()));
  return program;
}

async function runTest(directory: string, environment: Record<string, string>): Promise<void> {
  const program = start(["--test", join(directory, "orders.test.ts")], environment);
  const [code] = await once(program.child, "close");
  assert.equal(code, 0, program.output);
}

async function placeOrder(directory: string, environment: Record<string, string>): Promise<void> {
  const program = start([join(directory, "server.ts")], environment);
  const closed = once(program.child, "close");
  const told = async (pattern: RegExp): Promise<string> => {
    const until = performance.now() + WAIT_MS;
    while (!pattern.test(program.output)) {
      assert.ok(performance.now() < until && program.child.exitCode === null, program.output);
      await sleep(20);
    }
    return pattern.exec(program.output)![1]!;
  };
  try {
    const address = await told(/listening on (\S+)/);
    const post = (body: unknown) =>
      fetch(`${address}/orders`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    assert.equal((await post({ email: "ada@example.org", cents: 1749 })).status, 201);
    await told(/(mail to ada@example\.org: thank you)/);
    assert.equal((await post({ email: "ada", cents: 1749 })).status, 400);
    // Too much for the column, so the transaction is rolled back.
    assert.equal((await post({ email: "bob@example.org", cents: 3e9 })).status, 500);
    program.child.kill("SIGTERM");
    const [code] = await closed;
    assert.equal(code, 0, program.output);
    assert.doesNotMatch(program.output, /bob/);
  } finally {
    program.child.kill("SIGKILL");
  }
}

function linesOf(directory: string): number {
  const files = globSync("*.ts", { cwd: directory });
  return files.reduce(
    (sum, file) => sum + readFileSync(join(directory, file), "utf8").trimEnd().split("\n").length,
    0,
  );
}
