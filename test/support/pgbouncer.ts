/**
 * A real PgBouncer before a server of the tests, where one is installed: on a free port, in a temporary directory, ended by
 * its pid. It refuses to run as root, so root starts it as `nobody`.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { freePort } from "./free-port.ts";

export interface PgBouncerOptions {
  readonly mode: "transaction" | "session";
  /** Sessions at the server, for each database. */
  readonly sessions: number;
  /** More settings, as `name = value`. */
  readonly settings?: readonly string[];
}

const NOBODY = 65_534;
const START_MS = 10_000;
const PORT_TRIES = 5;

const ids = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
/** Where Debian has it is not on everybody's path. */
const env = { PATH: `${process.env["PATH"]}:/usr/sbin` };

/** For tests that cannot do without: why they are skipped. */
export const noPgBouncer: string | false =
  spawnSync("pgbouncer", ["--version"], { env }).status !== 0 &&
  "there is no pgbouncer here; its package is called pgbouncer";

export class PgBouncer implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #dir: string;
  readonly #port: number;
  readonly #atExit: () => void;

  private constructor(child: ChildProcess, dir: string, port: number) {
    this.#process = child;
    this.#dir = dir;
    this.#port = port;
    this.#atExit = () => {
      child.kill("SIGKILL");
      rmSync(dir, { recursive: true, force: true });
    };
    process.once("exit", this.#atExit);
  }

  /** `target`: a URL of the server. */
  static async start(target: string, options: PgBouncerOptions): Promise<PgBouncer> {
    const dir = mkdtempSync(join(tmpdir(), "baton-pgbouncer-"));
    try {
      for (let attempt = 1; ; attempt++) {
        const port = await freePort();
        const config = writeConfig(dir, new URL(target), port, options);
        try {
          return new PgBouncer(await launch(config), dir, port);
        } catch (error) {
          if (attempt === PORT_TRIES || !/in use/i.test(String(error))) throw error;
        }
      }
    } catch (error) {
      rmSync(dir, { recursive: true, force: true });
      throw error;
    }
  }

  /** The same URL through it. */
  through(target: string): string {
    const url = new URL(target);
    url.port = String(this.#port);
    return url.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.removeListener("exit", this.#atExit);
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const exited = new Promise((resolve) => this.#process.once("exit", resolve));
      this.#process.kill("SIGKILL"); // it would wait for its clients
      await exited;
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Clients of another program. All are closed again, whatever `work` does. */
export async function withClients(
  url: string,
  count: number,
  work: (clients: readonly Client[]) => Promise<void>,
): Promise<void> {
  const clients = Array.from({ length: count }, () => new Client({ connectionString: url }));
  for (const client of clients) client.on("error", () => {});
  try {
    await Promise.all(clients.map((client) => client.connect()));
    await work(clients);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

/** What another program is answered in each of a pooler's sessions: it keeps all of them busy at once. */
export async function inEverySession(url: string, sessions: number, sql: string): Promise<unknown[]> {
  const found = new Map<number, unknown>();
  await withClients(url, sessions, async (clients) => {
    await Promise.all(clients.map((client) => client.query("BEGIN")));
    for (const client of clients) {
      const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      found.set(rows[0]!.pid, (await client.query<Record<string, unknown>>(sql)).rows[0]);
    }
    await Promise.all(clients.map((client) => client.query("COMMIT")));
  });
  if (found.size !== sessions) throw new Error(`${found.size} sessions instead of ${sessions}`);
  return [...found.values()];
}

function writeConfig(dir: string, target: URL, port: number, options: PgBouncerOptions): string {
  const { mode, sessions, settings = [] } = options;
  const files = {
    "users.txt": `"${target.username}" ""\n`,
    "pgbouncer.ini": [
      "[databases]",
      `* = host=${target.hostname} port=${target.port}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = trust",
      `auth_file = ${join(dir, "users.txt")}`,
      `pool_mode = ${mode}`,
      `default_pool_size = ${sessions}`,
      "max_client_conn = 500",
      ...settings,
      "",
    ].join("\n"),
  };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(dir, name), text);
    if (ids.uid !== undefined) chownSync(join(dir, name), NOBODY, NOBODY);
  }
  chmodSync(dir, 0o755);
  return join(dir, "pgbouncer.ini");
}

function launch(config: string): Promise<ChildProcess> {
  const child = spawn("pgbouncer", [config], { ...ids, env, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = (reason: string): void => {
      clearTimeout(late);
      child.kill("SIGKILL");
      reject(new Error(`pgbouncer did not start: ${reason}\n${log}`));
    };
    const ended = (code: number | null): void => fail(`it ended with ${code}`);
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      if (!log.includes("process up")) return;
      clearTimeout(late);
      child.off("exit", ended);
      child.stderr.off("data", read).resume();
      resolve(child);
    };
    const late = setTimeout(() => fail(`not ready after ${START_MS} ms`), START_MS);
    child.once("error", (error) => fail(error.message));
    child.once("exit", ended);
    child.stderr.on("data", read);
  });
}
