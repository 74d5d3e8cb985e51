import type { QueueInfo, QueueStore } from "../store.ts";
import type { Ledger } from "./ledger.ts";

export class SqliteQueues implements QueueStore {
  readonly #ledger: Ledger;
  readonly #sql;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    const { file } = ledger;
    this.#sql = {
      save: file.prepare(
        "INSERT INTO queue VALUES (?, ?) ON CONFLICT DO UPDATE SET paused = excluded.paused",
      ),
      due: file.prepare(
        "SELECT k.queue, count(*) AS n FROM live l JOIN job j ON j.seq = l.seq JOIN kind k ON k.id = j.kind WHERE l.status = 0 AND l.run_at <= ? GROUP BY k.queue",
      ),
    };
  }

  setPaused(queue: string, paused: boolean): Promise<void> {
    return this.#ledger.file.write(() => {
      this.#sql.save.run(queue, paused ? 1 : 0);
      if (paused) this.#ledger.paused.add(queue);
      else this.#ledger.paused.delete(queue);
    });
  }

  async isPaused(queue: string): Promise<boolean> {
    return this.#ledger.file.read(() => this.#ledger.paused.has(queue));
  }

  async list(): Promise<readonly QueueInfo[]> {
    return this.#ledger.file.read(() => {
      const names = new Set([...this.#ledger.tallies().keys(), ...this.#ledger.paused]);
      const due = this.#due();
      return [...names].sort().map((name) => {
        const counts = { ...this.#ledger.counts(name) };
        const late = due.get(name) ?? 0;
        counts.scheduled -= late;
        counts.queued += late;
        return { name, paused: this.#ledger.paused.has(name), counts };
      });
    });
  }

  /** Jobs whose time has come since the last claim: they are queued, though nobody has noted it yet. */
  #due(): Map<string, number> {
    const rows = this.#sql.due.all(this.#ledger.clock.now());
    return new Map(rows.map((row) => [row["queue"] as string, row["n"] as number]));
  }
}
