/** The examples that are applications, as somebody runs them: mails, a report at night, orders, NestJS. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { testNode, type TestNode } from "../../src/library/testing.ts";
import { column } from "../support/columns.ts";
import { PostgresServer, type SharedPostgres } from "../support/postgres-server.ts";
import { script } from "../support/process.ts";
import { eventually } from "../support/wait.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = join(root, "examples");

function post(url: string, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

/** A server that has all mails in `mails`. It answers each with the next line of `answers`; with null it hangs up instead. */
class FakeSmtp {
  readonly mails: string[] = [];
  readonly answers: (string | null)[] = [];
  readonly #server = createServer((socket) => this.#talk(socket));

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    assert.ok(address !== null && typeof address === "object");
    return `smtp://127.0.0.1:${address.port}`;
  }

  close(): void {
    this.#server.close();
  }

  #talk(socket: Socket): void {
    let waiting = "";
    let mail: string[] | null = null;
    socket.on("error", () => {});
    socket.setEncoding("utf8").on("data", (text: string) => {
      const lines = (waiting + text).split("\r\n");
      waiting = lines.pop()!;
      for (const line of lines) {
        if (mail === null) {
          if (line === "DATA") mail = [];
          socket.write(line === "DATA" ? "354 go on\r\n" : line === "QUIT" ? "221 bye\r\n" : "250 ok\r\n");
        } else if (line !== ".") {
          mail.push(line);
        } else {
          this.mails.push(mail.join("\n"));
          mail = null;
          const answer = this.answers.shift()!;
          if (answer === null) socket.destroy();
          else socket.write(`${answer}\r\n`);
        }
      }
    });
    socket.write("220 ready\r\n");
  }
}

describe("examples/email", () => {
  const smtp = new FakeSmtp();
  let baton: TestNode;

  before(async () => {
    process.env["SMTP_URL"] = await smtp.listen();
    baton = await testNode({ tasks: [join(examples, "email", "tasks")] });
  });
  after(async () => {
    await baton?.stop();
    delete process.env["SMTP_URL"];
    smtp.close();
  });

  const submit = (answers: readonly (string | null)[]) => {
    smtp.mails.length = 0;
    smtp.answers.push(...answers);
    return baton.submit<{ messageId: string }>("welcome-mail", { to: "ada@example.org", name: "Ada" });
  };
  const triedOnce = (job: Awaited<ReturnType<typeof submit>>) =>
    eventually("a failure", async () => (await job.job()).status === "scheduled");

  it("comes back when a busy server may have time, and not by its retry policy", async () => {
    const job = await submit(["451 try again later", "250 taken"]);
    await triedOnce(job);
    assert.equal((await job.job()).runAt.getTime() - baton.now.getTime(), 300_000);
    await baton.advance("5m");
    await job.result();
    assert.deepEqual(column(await job.logs(), "message"), ["the server says: 250 taken"]);
    assert.match(smtp.mails[1]!, /^To: ada@example\.org$/m);
  });

  it("does not try an address again that the server refuses", async () => {
    const job = await submit(["550 no such mailbox"]);
    await assert.rejects(job.result(), { code: "JOB_FAILED", message: /550 no such mailbox/ });
    assert.equal(smtp.mails.length, 1);
  });

  it("sends the same message id again when the answer was lost", async () => {
    const job = await submit([null, "250 taken"]);
    await triedOnce(job);
    await baton.advance("10s");
    const { messageId } = await job.result();
    assert.equal(messageId, `<${job.id}@example.org>`);
    const sent = smtp.mails.map((mail) => /^Message-ID: (.*)$/m.exec(mail)?.[1]);
    assert.deepEqual(sent, [messageId, messageId]);
  });
});

describe("examples/nightly-report", () => {
  it("reports in the night what was sold on the day before, by the clock of Berlin", async () => {
    const tasks = [join(examples, "nightly-report", "tasks")];
    await using baton = await testNode({ tasks, now: new Date("2026-11-14T23:30:00Z") });
    // 02:30 in Berlin.
    await baton.advance("2h");
    const [job] = await baton.jobs();
    assert.deepEqual(
      [job!.schedule, job!.createdAt.toISOString()],
      ["nightly-sales", "2026-11-15T01:30:00.000Z"],
    );
    const result = await baton.job(job!.id).result();
    assert.deepEqual(result, { day: "2026-11-14", orders: 3, cents: { berlin: 2_248, oslo: 2_500 } });
    const { progress, progressMessage } = await baton.job(job!.id).job();
    assert.deepEqual([progress, progressMessage], [100, "3 orders"]);
  });
});

describe("examples/orders", () => {
  let server: SharedPostgres;
  before(async () => (server = await PostgresServer.shared()));
  after(() => server?.stop());

  const peers = join(root, "bench", "peers", "apps");
  const linesOf = (directory: string): number =>
    globSync("*.ts", { cwd: directory })
      .map((file) => readFileSync(join(directory, file), "utf8").trimEnd().split("\n").length)
      .reduce((sum, lines) => sum + lines, 0);

  it("has at most 75 lines, with its test", () => {
    const lines = linesOf(join(examples, "orders"));
    assert.ok(lines > 50 && lines <= 75, `${lines} lines`);
  });

  it("is compared with as many lines as the others have", () => {
    const text = readFileSync(join(peers, "README.md"), "utf8");
    const rows = [...text.matchAll(/^\| (Baton|pg-boss|BullMQ) \| (\d+) \|/gm)].map((row) => Number(row[2]));
    const counted = [join(examples, "orders"), join(peers, "pg-boss"), join(peers, "bullmq")].map(linesOf);
    assert.deepEqual(rows, counted);
    const page = readFileSync(join(root, "docs", "library.md"), "utf8");
    for (const lines of counted) assert.match(page, new RegExp(`\\b${lines}\\b`));
  });

  it("passes its own test", async () => {
    await using run = script("--test", [join(examples, "orders", "orders.test.ts")], { cwd: root });
    const { code, out } = await run.ended;
    assert.equal(code, 0, out);
    assert.match(out, /pass 1/);
  });

  it("stores an order with its jobs, or nothing", async () => {
    const url = await server.createDatabase();
    const environment = { DATABASE_URL: url, PORT: "0" };
    await using program = script(join(examples, "orders", "server.ts"), [], { environment });
    const [, address] = await program.told(/listening on (\S+)/);
    const answer = await post(`${address}/orders`, { email: "ada@example.org", cents: 1_749 });
    assert.equal(answer.status, 201);
    const { id } = (await answer.json()) as { id: string };
    await program.told(new RegExp(`mail to ada@example.org: thank you for order ${id}`));

    const wrong = await post(`${address}/orders`, { email: "ada", cents: 1_749 });
    assert.equal(wrong.status, 400);
    assert.match(((await wrong.json()) as { message: string }).message, /email/);
    // Good enough for the tasks, and too much for the column.
    const refused = await post(`${address}/orders`, { email: "ada@example.org", cents: 3e9 });
    assert.equal(refused.status, 500);

    assert.deepEqual(await server.query("SELECT id, cents FROM orders", url), [{ id, cents: 1_749 }]);
    assert.deepEqual(await server.query("SELECT count(*)::int AS n FROM baton.job", url), [{ n: 2 }]);
    assert.deepEqual(await server.query("SELECT name FROM baton.schedule", url), [{ name: "nightly" }]);
    assert.equal((await program.terminate()).code, 0, program.output);
  });
});

describe("examples/nestjs", () => {
  it("injects the node, runs a task of a provider, and ends both together", async (t) => {
    const directory = join(examples, "nestjs");
    t.after(() => rmSync(join(directory, "dist"), { recursive: true, force: true }));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const compiled = spawnSync(process.execPath, [tsc, "--project", directory], { encoding: "utf8" });
    assert.equal(compiled.status, 0, compiled.stdout);

    await using program = script(join(directory, "dist", "main.js"), [], { environment: { PORT: "0" } });
    const [, url] = await program.told(/listening on (\S+)/);
    const submitted = await post(`${url}/greetings`, { name: "Ada" });
    assert.equal(submitted.status, 201, program.output);
    const { id } = (await submitted.json()) as { id: string };
    const seen = await fetch(`${url}/greetings/${id}`);
    assert.deepEqual(await seen.json(), { greeting: "Hello Ada" });
    assert.equal((await post(`${url}/greetings`, { name: "" })).status, 400);
    assert.equal((await fetch(`${url}/jobs/`)).status, 200);
    assert.equal((await program.terminate()).code, 0, program.output);
  });
});
