/**
 * Keys and values of etcd in the encoding of the gateway: bytes in base64, 64-bit numbers as text, and no field where a
 * value is zero. A lease id stays text, because it does not fit into a JavaScript number.
 */

export interface KeyValue {
  readonly key: string;
  readonly value: string;
  /** Of the whole etcd, when this key was written last; greater with every write. */
  readonly revision: number;
  readonly lease: string;
}

export type Operation = Readonly<Record<string, Readonly<Record<string, string>>>>;
export type Comparison = Readonly<Record<string, string>>;

export interface Transaction {
  readonly if?: readonly Comparison[];
  readonly then: readonly Operation[];
}

export interface TransactionAnswer {
  readonly succeeded: boolean;
  /** Of the whole etcd, after the transaction. */
  readonly revision: number;
  /** What each `get` has found, in their order. */
  readonly found: readonly (readonly KeyValue[])[];
}

interface RawKeyValue {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision?: string;
  readonly lease?: string;
}

interface RawAnswer {
  readonly header: { readonly revision?: string };
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: { readonly kvs?: readonly RawKeyValue[] } }[];
}

export interface WatchEvent {
  readonly key: string;
  readonly revision: number;
  readonly deleted: boolean;
}

export function get(key: string): Operation {
  return { request_range: { key: encoded(key) } };
}

export function put(key: string, value: string, lease: string): Operation {
  return { request_put: { key: encoded(key), value: encoded(value), lease } };
}

/** The key was not written since; 0: it is not there. */
export function unchanged(key: string, revision: number): Comparison {
  return { key: encoded(key), target: "MOD", result: "EQUAL", mod_revision: String(revision) };
}

export function isUnder(key: string, lease: string): Comparison {
  return { key: encoded(key), target: "LEASE", result: "EQUAL", lease };
}

/** All keys in a folder, whose name ends with a slash. */
export function range(folder: string): Readonly<Record<string, string>> {
  return { key: encoded(folder), range_end: encoded(`${folder.slice(0, -1)}0`) }; // "0" comes after "/"
}

export function transactionBody({ if: compare = [], then }: Transaction): object {
  return { compare, success: then };
}

export function readAnswer(raw: unknown): TransactionAnswer {
  const { header, succeeded = false, responses = [] } = raw as RawAnswer;
  return {
    succeeded,
    revision: Number(header.revision ?? 0),
    found: responses.flatMap(({ response_range: found }) => (found ? [(found.kvs ?? []).map(keyValue)] : [])),
  };
}

/** Null for what is no message of a watch. */
export function readWatch(
  message: unknown,
): { readonly created: boolean; readonly canceled: boolean; readonly events: readonly WatchEvent[] } | null {
  const { result } = (message ?? {}) as {
    readonly result?: {
      readonly created?: boolean;
      readonly canceled?: boolean;
      readonly events?: readonly { readonly type?: string; readonly kv: RawKeyValue }[];
    };
  };
  if (!result) return null;
  const events = (result.events ?? []).map(({ type, kv }) => {
    const { key, revision } = keyValue(kv);
    return { key, revision, deleted: type === "DELETE" };
  });
  return { created: result.created === true, canceled: result.canceled === true, events };
}

function keyValue({ key, value = "", mod_revision = "0", lease = "" }: RawKeyValue): KeyValue {
  return { key: decoded(key), value: decoded(value), revision: Number(mod_revision), lease };
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decoded(text: string): string {
  return Buffer.from(text, "base64").toString("utf8");
}
