/** The declaration of a setting, one function for each kind. Its path follows from its place in the tables, see ../settings.ts. */

import type { NodeMap } from "../values/node-map.ts";
import type { StoreSetting } from "../values/secret-url.ts";

type TextKind = "string" | "path" | "paths" | "list" | "map" | "address" | "addresses" | "enum";
type ServerKind = "store" | "redis" | "etcd";
export type Kind = TextKind | ServerKind | "integer" | "number" | "boolean" | "duration" | "size";

interface About {
  readonly about: string;
  /** What breaks if it is smaller. */
  readonly smaller?: string;
  /** In words, where the default itself says nothing. */
  readonly defaultIs?: string;
  readonly flag?: string;
  /** A shorter name of its variable, in addition to the one made of its path. */
  readonly variable?: string;
}

interface TextAbout extends About {
  readonly pattern?: RegExp;
  /** What the pattern asks for, after "must …"; without it, what a node's name must be. */
  readonly patternIs?: string;
}

export interface Definition extends TextAbout {
  readonly kind: Kind;
  /** As a person would write it; null where it is determined at the start, and then `defaultIs` says how. */
  readonly default: string | number | boolean | readonly string[] | NodeMap | null;
  /** What an enum may be; for a list, what its entries may be, and then it must have one. */
  readonly values?: readonly string[];
  /** Of an enum: what is accepted too, but not offered. */
  readonly aliases?: readonly string[];
  readonly min?: string | number;
  readonly max?: string | number;
  /** Never shown: not in what is printed, not in mistakes. Its variable with `_FILE` behind it names a file that has it. */
  readonly secret?: true;
  /** With `secret`: a file that others can read is refused, not only warned of. */
  readonly ownerOnly?: true;
}

/** Also says, for the compiler alone, which value is read and which unit ends its name in `Settings`. */
export type Declared<Value, Unit extends string = ""> = Definition & {
  readonly is?: Value;
  readonly unit?: Unit;
};

/** Timers of the runtime overflow at 24.8 days and would fire at once. */
const TIMER_MAX = "24d";

type Range<Limit> = readonly [min: Limit, max: Limit];

const declare = <Value, Unit extends string = "">(
  kind: Kind,
  value: Definition["default"],
  rest: Omit<Definition, "kind" | "default">,
): Declared<Value, Unit> => ({ kind, default: value, ...rest });

export const text = (value: string | null, about: TextAbout) => declare<string>("string", value, about);
export const secret = (about: TextAbout & Pick<Definition, "ownerOnly">) =>
  declare<string>("string", "", { defaultIs: "empty", secret: true, ...about });
export const path = (value: string, about: About) => declare<string>("path", value, about);
export const paths = (about: About) => declare<readonly string[]>("paths", [], about);
export const list = (about: TextAbout) => declare<readonly string[]>("list", [], about);
export const someOf = <Choice extends string>(values: readonly Choice[], about: About) =>
  declare<readonly Choice[]>("list", values, { values, ...about });
export const oneOf = <const Choice extends string>(
  value: Choice,
  values: readonly Choice[],
  about: About & Pick<Definition, "aliases">,
) => declare<Choice>("enum", value, { values, ...about });
export const map = (about: About) => declare<NodeMap>("map", {}, about);
export const address = (about: About) => declare<string>("address", "", { defaultIs: "empty", ...about });
export const addresses = (about: About) => declare<readonly string[]>("addresses", [], about);
export const store = (value: StoreSetting, about: About) => declare<StoreSetting>("store", value, about);
export const server = (kind: Exclude<ServerKind, "store">, about: About) =>
  declare<string>(kind, "", { defaultIs: "none", ...about });
export const integer = (value: number, [min, max]: Range<number>, about: About) =>
  declare<number>("integer", value, { min, max, ...about });
export const number = (value: number, [min, max]: Range<number>, about: About) =>
  declare<number>("number", value, { min, max, ...about });
export const boolean = (value: boolean, about: About) => declare<boolean>("boolean", value, about);
export const size = (value: string, [min, max]: Range<string>, about: About) =>
  declare<number, "Bytes">("size", value, { min, max, ...about });
/** At most what a timer can wait. */
export const duration = (value: string, min: string, about: About) =>
  declare<number, "Ms">("duration", value, { min, max: TIMER_MAX, ...about });
/** A duration that is compared with the times of records, and may be longer than a timer. */
export const age = (value: string, min: string, about: About) =>
  declare<number, "Ms">("duration", value, { min, ...about });
