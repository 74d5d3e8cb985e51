/** The maximum number of entries in one message to a queue, or in one statement of the store. */
const BATCH_MAX = 200;
/** Batches under way at a time. More, and events of the jobs wait behind them. */
const PARALLEL = 4;

/** Does something with all of them, a batch at a time and some batches at once. Rejects with the first failure. */
export async function inBatches<Item>(
  items: readonly Item[],
  work: (batch: readonly Item[]) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const from = next;
      next += BATCH_MAX;
      await work(items.slice(from, next));
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, Math.ceil(items.length / BATCH_MAX)) }, lane));
}
