/**
 * The cache of the PostgreSQL store: the numbers that stand for names. They are assigned once, by an autocommitted
 * statement, and never change, so that any number of nodes agree. Everything else is read from the database.
 */

import type { JobId, NodeName } from "../../../core/ids.ts";
import type { Clock } from "../../../platform/clock.ts";
import { type Postgres, type Queryable, read, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s } from "../../../platform/drivers/postgres/arrays.ts";
import { type Kind, kindKey } from "../../job-row.ts";
import { Numbered } from "../../numbered.ts";
import type { Author } from "../../store.ts";

/** The time of the database, unless a test gives one as $1. */
export const NOW = "coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

const ADD_KIND = write(
  "kind-add",
  `INSERT INTO baton.kind (queue, task) VALUES ($1, $2)
   ON CONFLICT (task, queue) DO UPDATE SET queue = excluded.queue RETURNING id`,
);
const KINDS = read("kind-list", "SELECT id, queue, task FROM baton.kind WHERE id = ANY ($1::int[])");
/** With more they are looked up one by one: passing all of them would cost more than it saves. */
const FEW_KINDS = 32;
const FIRST_KINDS = read(
  "kind-first",
  `SELECT id, queue, task FROM baton.kind ORDER BY id LIMIT ${FEW_KINDS + 1}`,
);
const ADD_NAME = write(
  "name-add",
  "INSERT INTO baton.name (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id",
);
const NAMES = read("name-list", "SELECT id, name FROM baton.name WHERE id = ANY ($1::int[])");
const ADD_AUTHOR = write(
  "author-add",
  `INSERT INTO baton.author (node, owner_epoch, leader_epoch) VALUES ($1, $2, $3)
   ON CONFLICT (node, owner_epoch, leader_epoch) DO UPDATE SET node = excluded.node RETURNING id`,
);

/** Names of workers and authors change with incarnations and epochs; a dropped entry is looked up again. */
const REMEMBERED_MAX = 5_000;

/** Drops entries that were not used lately. */
class Remembered<K, V> {
  #recent = new Map<K, V>();
  #earlier = new Map<K, V>();

  get(key: K): V | undefined {
    const known = this.#recent.get(key);
    if (known !== undefined) return known;
    const earlier = this.#earlier.get(key);
    if (earlier !== undefined) this.set(key, earlier);
    return earlier;
  }

  set(key: K, value: V): void {
    if (this.#recent.size >= REMEMBERED_MAX) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, value);
  }
}

export class StoreCache {
  readonly db: Postgres;
  readonly #time: Clock | null;
  readonly #kinds = new Numbered<Kind, Omit<Kind, "id">>(kindKey);
  #few: readonly Kind[] = [];
  readonly #names = new Remembered<number, string>();
  readonly #nameIds = new Remembered<string, number>();
  readonly #authorIds = new Remembered<string, number>();

  constructor(db: Postgres, time: Clock | null) {
    this.db = db;
    this.#time = time;
  }

  /** Parameter $1 of every statement that needs the time. */
  now(): number | null {
    return this.#time?.now() ?? null;
  }

  knownKindId(queue: string, task: string): number | null {
    return this.#kinds.idOf({ queue, task }) ?? null;
  }

  async kindId(queue: string, task: string): Promise<number> {
    const known = this.knownKindId(queue, task);
    if (known !== null) return known;
    const [row] = await this.db.query<{ id: number }>(ADD_KIND, [queue, task]);
    return this.#kinds.add(row!.id, { id: row!.id, queue, task });
  }

  kind(id: number): Kind {
    return this.#kinds.get(id)!;
  }

  async learnKinds(ids: Iterable<number>): Promise<void> {
    const unknown = [...ids].filter((id) => !this.#kinds.get(id));
    if (unknown.length === 0) return;
    for (const kind of await this.db.query<Kind>(KINDS, [int4s(unknown)])) this.#kinds.add(kind.id, kind);
  }

  allKinds(): readonly Kind[] | null {
    if (this.#kinds.size > FEW_KINDS) return null;
    if (this.#few.length !== this.#kinds.size) this.#few = this.#kinds.all();
    return this.#few;
  }

  async learnAllKinds(): Promise<void> {
    for (const kind of await this.db.query<Kind>(FIRST_KINDS)) this.#kinds.add(kind.id, kind);
  }

  knownNameId(name: string): number | null {
    return this.#nameIds.get(name) ?? null;
  }

  async nameId(name: string): Promise<number> {
    const known = this.#nameIds.get(name);
    if (known !== undefined) return known;
    const [row] = await this.db.query<{ id: number }>(ADD_NAME, [name]);
    this.#learnName(row!.id, name);
    return row!.id;
  }

  name(id: number): string {
    return this.#names.get(id)!;
  }

  async learnNames(ids: Iterable<number>): Promise<void> {
    const unknown = [...ids].filter((id) => this.#names.get(id) === undefined);
    if (unknown.length === 0) return;
    const rows = await this.db.query<{ id: number; name: string }>(NAMES, [int4s(unknown)]);
    for (const { id, name } of rows) this.#names.set(id, name);
  }

  async authorId(author: Author): Promise<number> {
    const key = `${author.node}/${author.ownerEpoch}/${author.leaderEpoch}`;
    const known = this.#authorIds.get(key);
    if (known !== undefined) return known;
    const id = await this.authorIdWithin(this.db, author);
    this.#authorIds.set(key, id);
    return id;
  }

  /** The transaction may be rolled back, so nothing is cached. */
  async authorIdWithin(tx: Queryable, author: Author): Promise<number> {
    const { node, ownerEpoch, leaderEpoch } = author;
    const [row] = await tx.query<{ id: number }>(ADD_AUTHOR, [node, ownerEpoch, leaderEpoch]);
    return row!.id;
  }

  #learnName(id: number, name: string): void {
    this.#names.set(id, name);
    this.#nameIds.set(name, id);
  }
}

const UUID_LENGTH = 36;

/** The 16 bytes of an id that the database compares. */
export function uuidOf(id: JobId): string {
  return id.slice(-UUID_LENGTH);
}

/** The name of the node that created the job. */
export function birthplaceOf(id: JobId): NodeName {
  return id.slice(0, -UUID_LENGTH - 1) as NodeName;
}

/** Called for every job of a batch, so the ids are not split. */
export function sameBirthplace(a: JobId, b: JobId): boolean {
  if (a.length !== b.length) return false;
  for (let at = a.length - UUID_LENGTH - 1; at >= 0; at--) {
    if (a.charCodeAt(at) !== b.charCodeAt(at)) return false;
  }
  return true;
}

/** The type text of PostgreSQL cannot contain NUL, but the output of some programs does. */
export function withoutNul(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}
