/** The output of `baton demo`: the state of each node, the leader that most of them report, and the changes. */

export interface Seen {
  readonly name: string;
  readonly pid: number | null;
  /** What the node says; null while it does not answer. */
  readonly says: {
    readonly role: string;
    readonly leader: string | null;
    readonly epoch: number | null;
  } | null;
}

export interface AgreedLeader {
  readonly name: string;
  readonly epoch: number;
}

/** Whom more than half of all nodes follow under the same epoch; null if there is nobody. */
export function agreedLeader(seen: readonly Seen[]): AgreedLeader | null {
  const words = seen.flatMap(({ says }) =>
    says?.leader && says.epoch !== null ? [{ name: says.leader, epoch: says.epoch }] : [],
  );
  const groups = Map.groupBy(words, ({ name, epoch }) => `${epoch} ${name}`);
  for (const group of groups.values()) if (group.length > seen.length / 2) return group[0]!;
  return null;
}

export interface Change {
  readonly text: string;
  /** The node that leads now, if that is the change. */
  readonly leader?: string;
}

/** One for each thing that is not as it was. */
export function changes(before: readonly Seen[], now: readonly Seen[]): Change[] {
  const lines = now.flatMap((node) => {
    const was = before.find(({ name }) => name === node.name);
    if (!was || (was.says === null) === (node.says === null)) return [];
    if (node.says !== null) return [{ text: `${node.name} answers` }];
    return node.pid === null ? [] : [{ text: `${node.name} does not answer` }];
  });
  const [old, leader] = [agreedLeader(before), agreedLeader(now)];
  if (leader === null)
    return old === null ? lines : [...lines, { text: "no leader that most nodes agree on" }];
  if (leader.name === old?.name && leader.epoch === old.epoch) return lines;
  return [...lines, { text: `${leader.name} leads under epoch ${leader.epoch}`, leader: leader.name }];
}

export function killCommand(pid: number): string {
  return process.platform === "win32" ? `taskkill /F /PID ${pid}` : `kill -9 ${pid}`;
}
