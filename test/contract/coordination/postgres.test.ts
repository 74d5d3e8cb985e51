import { after } from "node:test";
import { openPostgresLock } from "../../support/lock-postgres.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { leaseLockContract } from "./contract.ts";

const server = await PostgresServer.shared();
after(() => server.stop());

/** Each is fifty candidates, or 25 calls: a few seconds in all. */
const ROUNDS = 30;

leaseLockContract("postgres", () => openPostgresLock(server, ROUNDS));
