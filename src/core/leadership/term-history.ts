/** The history of leadership: terms, put together from the journal entries about their start and end. */

export interface TermEntry {
  readonly at: number;
  readonly node: string;
  readonly kind: "started" | "ended";
  readonly role: string;
  readonly epoch: number;
  readonly leader: string;
  readonly reason: string | null;
}

export interface PastTerm extends Pick<TermEntry, "role" | "epoch" | "leader" | "reason"> {
  readonly startedAt: number;
  /** Null while it lasts, as far as is known. */
  readonly endedAt: number | null;
}

const SUPERSEDED = "another term began";

/**
 * Newest first. The reason given by the leader itself is preferred; but a term ends when the next one begins, however
 * late a paused leader noticed. `each`: whether every node has terms of its own for a role.
 */
export function termHistory(
  entries: readonly TermEntry[],
  each: (role: string) => boolean = () => false,
): PastTerm[] {
  const lines = Map.groupBy(
    entries.filter(({ kind }) => kind === "started"),
    ({ role, leader }) => (each(role) ? `${role} ${leader}` : role),
  );
  const ends = Map.groupBy(
    entries.filter(({ kind }) => kind === "ended"),
    keyOf,
  );
  const terms: PastTerm[] = [];
  for (const line of lines.values()) {
    const inOrder = [...new Map(line.map((entry) => [keyOf(entry), entry])).values()].sort(
      (a, b) => a.epoch - b.epoch,
    );
    inOrder.forEach(({ role, epoch, leader, at }, index) => {
      const next = inOrder[index + 1] ?? null;
      const told = ends.get(keyOf({ role, epoch, leader })) ?? [];
      const own = told.find(({ node }) => node === leader) ?? told[0] ?? null;
      const instants = [...told.map((end) => end.at), ...(next ? [next.at] : [])];
      terms.push({
        role,
        epoch,
        leader,
        startedAt: at,
        endedAt: instants.length === 0 ? null : Math.max(at, Math.min(...instants)),
        reason: own?.reason ?? (next ? SUPERSEDED : null),
      });
    });
  }
  return terms.sort((a, b) => b.startedAt - a.startedAt || b.epoch - a.epoch);
}

function keyOf({ role, epoch, leader }: Pick<TermEntry, "role" | "epoch" | "leader">): string {
  return `${role} ${epoch} ${leader}`;
}
