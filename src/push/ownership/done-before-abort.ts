/**
 * Whether the work was done before the signal was aborted. After an abort the work continues; its failure is then
 * ignored.
 */
export async function doneBefore(work: Promise<void>, signal: AbortSignal): Promise<boolean> {
  const { promise: aborted, resolve } = Promise.withResolvers<boolean>();
  const abort = (): void => resolve(false);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  work.catch(() => {});
  try {
    return await Promise.race([aborted, work.then(() => true)]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
