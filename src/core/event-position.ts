/** The id of an event: `7-41` is the 41st of the leader with epoch 7. */
export interface Position {
  readonly epoch: number;
  readonly n: number;
}

export function positionOf(id: string): Position {
  const dash = id.indexOf("-");
  return { epoch: Number(id.slice(0, dash)), n: Number(id.slice(dash + 1)) };
}

export function isLater(a: Position, b: Position): boolean {
  return a.epoch === b.epoch ? a.n > b.n : a.epoch > b.epoch;
}
