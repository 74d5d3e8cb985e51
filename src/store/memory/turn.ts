/**
 * One call at a time, from beginning to end without yielding: the transaction of the memory store. A turn first queues
 * the jobs that have become due, so that every call sees the current time.
 */
export type Turn = <T>(step: (now: number) => T) => Promise<T>;
