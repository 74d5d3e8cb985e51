/** A process that wants a lock, says when it has it, and does nothing else. */

import { Client } from "pg";

const client = new Client({ connectionString: process.argv[2]! });
client.on("error", () => process.exit(1));
await client.connect();
await client.query("SELECT pg_advisory_lock(4711)");
process.stdout.write("locked\n");
setInterval(() => {}, 60_000);
