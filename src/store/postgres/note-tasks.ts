/** Notes the options of tasks, which the functions in SQL fill in for their callers. */

import { int4s, int8s, texts } from "../../platform/drivers/postgres/arrays.ts";
import { type Postgres, read, write } from "../../platform/drivers/postgres/postgres.ts";
import type { NotedTask } from "../store.ts";

/** In order, so that two nodes with the same new tasks do not wait for each other crosswise. What has not changed is left alone. */
const NOTE_TASKS = write(
  "note-tasks",
  `INSERT INTO baton.task AS t (name, queue, priority, max_attempts, timeout_ms)
   SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::bigint[]) AS a (name, queue, priority, max_attempts, timeout_ms)
   ORDER BY name COLLATE "C"
   ON CONFLICT (name) DO UPDATE SET queue = excluded.queue, priority = excluded.priority,
     max_attempts = excluded.max_attempts, timeout_ms = excluded.timeout_ms
   WHERE (t.queue, t.priority, t.max_attempts, t.timeout_ms)
     IS DISTINCT FROM (excluded.queue, excluded.priority, excluded.max_attempts, excluded.timeout_ms)`,
);

const NOTED_TASKS = read("noted-tasks", "SELECT name FROM baton.task");

export async function notedTasks(db: Postgres): Promise<readonly string[]> {
  return (await db.query<{ readonly name: string }>(NOTED_TASKS, [])).map(({ name }) => name);
}

export async function noteTasks(db: Postgres, tasks: readonly NotedTask[]): Promise<void> {
  if (tasks.length === 0) return;
  await db.query(NOTE_TASKS, [
    texts(tasks.map(({ task }) => task)),
    texts(tasks.map(({ queue }) => queue)),
    int4s(tasks.map(({ priority }) => priority)),
    int4s(tasks.map(({ maxAttempts }) => maxAttempts)),
    int8s(tasks.map(({ timeoutMs }) => timeoutMs)),
  ]);
}
