/** Whether the work was done before the signal fired. A server that is silent must not hold up whoever was told to hurry. */
export async function doneBefore(work: Promise<void>, signal: AbortSignal): Promise<boolean> {
  const { promise: aborted, resolve } = Promise.withResolvers<boolean>();
  const abort = (): void => resolve(false);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  // What becomes of it afterwards is nobody's concern.
  work.catch(() => {});
  try {
    return await Promise.race([aborted, work.then(() => true)]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
