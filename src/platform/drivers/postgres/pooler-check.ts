/**
 * Checks whether a transaction pooler is in between. Session state (settings, prepared statements, LISTEN, advisory locks) is then not ours,
 * and some of it would remain for other programs. The check runs once, unless it fails, and changes nothing in any session.
 */

import { Client } from "./package.ts";
import type { Clock } from "../../clock.ts";
import { cut, inTime, socketOf } from "./connection-mode.ts";
import { translated } from "./errors.ts";

interface PoolerCheckOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly applicationName?: string;
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 5_000;
/**
 * Something in between answers with a key of its own and may still be a pooler of whole sessions. Fewer rounds, and a busy one may by chance
 * give us the same sessions all the time.
 */
const ROUNDS_PAST_A_PROXY = 10;

const PID = "SELECT pg_backend_pid() AS pid";

export type PoolerCheck = ReturnType<typeof poolerCheck>;

export function poolerCheck({
  url,
  clock,
  applicationName = "baton",
  deadlineMs = DEADLINE_MS,
}: PoolerCheckOptions) {
  let look: Promise<boolean> | null = null;

  function newClient(): Client {
    const client = new Client({ connectionString: url, application_name: applicationName });
    client.on("error", () => {}); // what waits for an answer fails as well
    return client;
  }

  async function looked(): Promise<boolean> {
    const clients = [newClient(), newClient()] as const;
    try {
      return await inTime(clock, deadlineMs, clients, async () => {
        await Promise.all(clients.map((client) => client.connect()));
        return sharesSessions(...clients);
      });
    } catch (error) {
      clients.forEach(cut);
      throw error;
    } finally {
      clients.forEach(leave);
    }
  }

  return {
    pooled(): Promise<boolean> {
      look ??= looked().catch((error: unknown) => {
        look = null;
        throw translated(error);
      });
      return look;
    },
  };
}

/**
 * Two connections of our own have two sessions, always the same ones. A pooler gives a free session: the last one, the next in its round, or
 * the only one. While one connection keeps a session busy, the other must get a different one, and who comes first then changes.
 */
async function sharesSessions(a: Client, b: Client): Promise<boolean> {
  const own = new Map([
    [a, await pidOf(a)],
    [b, await pidOf(b)],
  ]);
  if (own.get(a) === own.get(b)) return true;
  const moved = async (client: Client): Promise<boolean> => (await pidOf(client)) !== own.get(client);
  const rounds = keyOf(a) === own.get(a) ? 1 : ROUNDS_PAST_A_PROXY;
  for (let round = 0; round < rounds; round++) {
    for (const [busy, other] of [
      [a, b],
      [b, a],
    ] as const) {
      await busy.query("BEGIN");
      const seen = [await moved(busy), await moved(other)];
      await busy.query("COMMIT");
      if (seen.includes(true)) return true;
    }
    if ((await moved(b)) || (await moved(a))) return true;
  }
  return false;
}

async function pidOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>(PID);
  return rows[0]!.pid;
}

/** The process that the greeting named. */
function keyOf(client: Client): number | null {
  return (client as unknown as { processID: number | null }).processID;
}

function leave(client: Client): void {
  socketOf(client).unref();
  void client.end();
}
