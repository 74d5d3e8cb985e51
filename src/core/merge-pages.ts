/** Merges the pages of several nodes, each with its newest entry first, into one page. */

export interface Page<Item> {
  readonly node: string;
  readonly items: readonly Item[];
  /** The node has older ones behind these. */
  readonly more: boolean;
}

export interface Merged<Item> {
  readonly items: readonly Item[];
  /** How many of each page were taken, in the order of the pages. */
  readonly taken: readonly number[];
}

/**
 * The newest of all, at most `limit`. Stops also where a page ends that goes on at its node: what stands behind it may be newer
 * than the rest of the others.
 */
export function mergePages<Item>(
  pages: readonly Page<Item>[],
  limit: number,
  isBefore: (a: Item, b: Item) => boolean,
): Merged<Item> {
  const taken = pages.map(() => 0);
  const items: Item[] = [];
  while (items.length < limit) {
    let best = -1;
    for (let i = 0; i < pages.length; i++) {
      const head = pages[i]!.items[taken[i]!];
      if (head === undefined) {
        if (pages[i]!.more) return { items, taken };
        continue;
      }
      if (best < 0 || isBefore(head, pages[best]!.items[taken[best]!]!)) best = i;
    }
    if (best < 0) break;
    items.push(pages[best]!.items[taken[best]!]!);
    taken[best]!++;
  }
  return { items, taken };
}
