/** A real PgBouncer before a server of the tests, where one is installed. */

import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import {
  onFreePort,
  ServerProcess,
  unprivileged,
  type ServerCommand,
  type Started,
} from "./server-process.ts";

export interface PgBouncerOptions {
  readonly mode: "transaction" | "session";
  /** Sessions at the server, for each database. */
  readonly sessions: number;
  /** More settings, as `name = value`. */
  readonly settings?: readonly string[];
}

/** Where Debian has it is not on everybody's path. */
const env = { PATH: `${process.env["PATH"]}:/usr/sbin` };

const COMMAND: ServerCommand = {
  program: "pgbouncer",
  args: [],
  options: { ...unprivileged, env, cwd: "/" },
  ready: /process up/,
};

/** For tests that cannot do without: why they are skipped. */
export const noPgBouncer: string | false =
  spawnSync("pgbouncer", ["--version"], { env }).status !== 0 &&
  "there is no pgbouncer here; its package is called pgbouncer";

export class PgBouncer extends ServerProcess implements AsyncDisposable {
  readonly #port: number;

  private constructor(started: Started, port: number) {
    super(started);
    this.#port = port;
  }

  /** `target`: a URL of the server. */
  static async start(target: string, options: PgBouncerOptions): Promise<PgBouncer> {
    const { started, port } = await onFreePort((directory, port) => ({
      ...COMMAND,
      args: [writeConfig(directory, new URL(target), port, options)],
    }));
    return new PgBouncer(started, port);
  }

  through(target: string): string {
    const url = new URL(target);
    url.port = String(this.#port);
    return url.href;
  }

  /** At once: it would wait for its clients. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
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
    if (unprivileged.uid !== undefined) chownSync(join(dir, name), unprivileged.uid, unprivileged.gid!);
  }
  chmodSync(dir, 0o755);
  return join(dir, "pgbouncer.ini");
}
