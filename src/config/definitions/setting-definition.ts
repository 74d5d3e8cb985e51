/** The declaration of a setting, as used in the tables of settings. */

export type Kind =
  | "string"
  | "path"
  | "paths"
  | "list"
  | "map"
  | "address"
  | "addresses"
  | "enum"
  | "store"
  | "redis"
  | "etcd"
  | "integer"
  | "number"
  | "boolean"
  | "duration"
  | "size";

export interface Setting {
  /** As in the file: `http.port` is `port` under `http`. At most one level deep. */
  readonly path: string;
  readonly kind: Kind;
  /** As a person would write it; null where it is worked out at start, and then `defaultIs` says how. */
  readonly default: string | number | boolean | readonly string[] | Readonly<Record<string, string>> | null;
  readonly defaultIs?: string;
  readonly flag?: string;
  /** What an enum may be; for a list, what its entries may be, and then it must have one. */
  readonly values?: readonly string[];
  /** Written like the value itself. */
  readonly min?: string | number;
  readonly max?: string | number;
  readonly pattern?: RegExp;
  /** What the pattern asks for, after "must …"; without it, what a node's name must be. */
  readonly patternIs?: string;
  /** Never shown: not in what is printed, not in mistakes. Its variable with `_FILE` behind it names a file that has it. */
  readonly secret?: true;
  /** With `secret`: a file that others can read is refused, not only warned of. */
  readonly ownerOnly?: true;
  /** A shorter name of its variable, beside the one made of its path. */
  readonly variable?: string;
  readonly about: string;
  /** What breaks if it is smaller. */
  readonly smaller?: string;
}

/** Timers of the runtime overflow at 24.8 days and would fire at once. */
export const TIMER_MAX = "24d";
