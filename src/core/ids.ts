/**
 * Names and ids.
 *
 * A job id is `<node-name>-<uuid>`. The prefix is the node that created the job. It is a hint for routing, never a
 * proof of ownership. The id is parsed by the fixed length of the uuid at its end, so that nodes `node` and `node-a`
 * may coexist.
 */

export type NodeName = string & { readonly __brand: "NodeName" };
export type JobId = string & { readonly __brand: "JobId" };
/** A claimant's hold on the jobs that it claimed: for the life of a worker, or for one batch of an agent. */
export type LeaseId = string & { readonly __brand: "LeaseId" };

/** Names of nodes, and of queues, tasks and schedules. */
export const NODE_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
export const THING_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._:/-]{0,126}[A-Za-z0-9])?$/;

const UUID_LENGTH = 36;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const JOB_ID_LENGTH_MAX = 63 + 1 + UUID_LENGTH;

export function jobId(birthplace: NodeName, uuid: string): JobId {
  return `${birthplace}-${uuid}` as JobId;
}

export function parseJobId(text: string): { readonly birthplace: NodeName; readonly uuid: string } | null {
  if (text.length > JOB_ID_LENGTH_MAX) return null;
  const cut = text.length - UUID_LENGTH;
  if (cut < 2 || text[cut - 1] !== "-") return null;
  const birthplace = text.slice(0, cut - 1);
  const uuid = text.slice(cut);
  if (!UUID.test(uuid) || !NODE_NAME.test(birthplace)) return null;
  return { birthplace: birthplace as NodeName, uuid };
}

export function isJobId(text: string): text is JobId {
  return parseJobId(text) !== null;
}

/**
 * The uuid at this place of a batch that begins with `first`. Counts in the bits behind the time and carries over into
 * it, so that ids of a batch sort in its order and differ where a store looks first.
 */
export function uuidAt(first: string, index: number): string {
  if (index === 0) return first;
  const count = Number.parseInt(first.slice(15, 18), 16) + index;
  const time = Number.parseInt(first.slice(0, 8) + first.slice(9, 13), 16) + Math.floor(count / 0x1000);
  const text = (time % 2 ** 48).toString(16).padStart(12, "0");
  const rest = (count % 0x1000).toString(16).padStart(3, "0");
  return `${text.slice(0, 8)}-${text.slice(8)}-${first[14]}${rest}${first.slice(18)}`;
}

/** One uuid after the other, as `uuidAt` counts them. */
export class Uuids {
  readonly #first: string;
  #index = 0;
  #head = "";
  #count = 0xfff;
  readonly #tail: string;

  constructor(first: string) {
    this.#first = first;
    this.#tail = first.slice(18);
  }

  next(): string {
    const index = this.#index++;
    if (++this.#count <= 0xfff)
      return `${this.#head}${this.#count.toString(16).padStart(3, "0")}${this.#tail}`;
    const uuid = uuidAt(this.#first, index);
    this.#head = uuid.slice(0, 15);
    this.#count = Number.parseInt(uuid.slice(15, 18), 16);
    return uuid;
  }
}

export function isUuid(text: string): boolean {
  return UUID.test(text);
}
