/** Tells in the log who comes, who leaves and who falls silent: one line for each change, however often it is looked at. */

import type { NodeName } from "../../core/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { PeerBook } from "./peer-book.ts";
import type { Roster } from "./roster.ts";

export interface SightingsOptions {
  readonly roster: Roster;
  readonly book: PeerBook;
  readonly deadAfterMs: number;
  readonly log: Log;
}

export class Sightings {
  readonly #o: SightingsOptions;
  /** Whether each was here at the last look; nobody has an entry before something is known of it. */
  readonly #here = new Map<NodeName, boolean>();

  constructor(options: SightingsOptions) {
    this.#o = options;
  }

  /** A new life has seen nobody yet. */
  begin(): void {
    this.#here.clear();
  }

  look(): void {
    const { roster, book, deadAfterMs } = this.#o;
    const others = roster.others();
    for (const peer of others) {
      const alive = book.alive(peer);
      const unknown = book.entry(peer) === null && book.silentMs(peer) < deadAfterMs;
      if (unknown || this.#here.get(peer) === alive) continue;
      this.#here.set(peer, alive);
      this.#tell(peer, alive);
    }
    for (const peer of this.#here.keys()) if (!others.includes(peer)) this.#here.delete(peer);
  }

  #tell(peer: NodeName, alive: boolean): void {
    const { book, log } = this.#o;
    const entry = book.entry(peer);
    if (alive) log.info({ peer }, "a node is here");
    else if (entry?.presence.status === "dead") log.info({ peer }, "a node has left");
    else if (entry)
      log.warn({ peer }, "a node is not heard of any more; its jobs are out of reach until it is back");
    else log.warn({ peer }, "a node of this cluster was not heard of yet");
  }
}
