/**
 * One call at a time, each from beginning to end without giving way: that is what a transaction is in memory. A turn
 * starts with the jobs that have become due in line, so that every call sees the time that it is.
 */
export type Turn = <T>(step: (now: number) => T) => Promise<T>;
