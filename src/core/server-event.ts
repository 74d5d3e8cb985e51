/** One event of a stream, as `text/event-stream` has it. */
export interface ServerEvent {
  readonly event: string;
  /** Where a reader that lost its connection goes on. */
  readonly id?: string;
  readonly data: unknown;
}
