/** All settings, each declared once in definitions/. Type, variables, flags, validation and docs/configuration.md derive from them. */

import type { Duration } from "../core/duration.ts";
import { CLUSTER_SECTIONS } from "./definitions/cluster-settings.ts";
import { NODE_SECTIONS, TOP_SETTINGS } from "./definitions/node-settings.ts";
import type { Declared, Definition } from "./definitions/setting-definition.ts";

const SECTIONS = { ...NODE_SECTIONS, ...CLUSTER_SECTIONS };

export interface Setting extends Definition {
  /** As in the file: `http.port` is `port` under `http`. At most one level deep. */
  readonly path: string;
}

export const SETTINGS: readonly Setting[] = [
  ...Object.entries(TOP_SETTINGS).map(([path, row]) => ({ path, ...row })),
  ...Object.entries(SECTIONS).flatMap(([section, rows]) =>
    Object.entries<Definition>(rows).map(([name, row]) => ({ path: `${section}.${name}`, ...row })),
  ),
];

export const SETTING_BY_PATH: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((row) => [row.path, row]));

/** `http.body_limit` is `BATON_HTTP__BODY_LIMIT`: two underscores part the levels, because one is part of names. */
export function environmentName(path: string): string {
  return `BATON_${path.toUpperCase().replaceAll(".", "__")}`;
}

/** Its place in a file, and the key of its value in `Settings`. */
export function settingKey({ path, kind }: Setting) {
  const [first, second] = path.split(".") as [string, string?];
  const [section, name] = second === undefined ? [null, first] : [first, second];
  const unit = kind === "duration" ? "Ms" : kind === "size" ? "Bytes" : "";
  const key = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) + unit;
  return { section, name, key };
}

/** A value for each setting, in the shape of a file (`name`) or of `Settings` (`key`). */
export function nested(by: "name" | "key", cell: (row: Setting) => unknown): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const row of SETTINGS) {
    const place = settingKey(row);
    const holder = place.section === null ? all : ((all[place.section] ??= {}) as Record<string, unknown>);
    holder[place[by]] = cell(row);
  }
  return all;
}

type Camel<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;
type Unit<Row> = Row extends Declared<unknown, infer U> ? U : never;
type Fields<Rows> = {
  readonly [Name in keyof Rows & string as `${Camel<Name>}${Unit<Rows[Name]>}`]: Rows[Name] extends Declared<
    infer Value,
    string
  >
    ? Value
    : never;
};
type Sections = typeof SECTIONS;

export type SettingPath =
  | keyof typeof TOP_SETTINGS
  | { [S in keyof Sections]: `${S}.${keyof Sections[S] & string}` }[keyof Sections];

type OptionValue<Row> =
  Unit<Row> extends "Ms"
    ? Duration
    : Unit<Row> extends "Bytes"
      ? number | string
      : Row extends Declared<infer Value, string>
        ? Value
        : never;
type OptionFields<Rows> = {
  readonly [Name in keyof Rows & string as Camel<Name>]?: OptionValue<Rows[Name]> | undefined;
};

/** As a program writes them: in camel case, durations as `"30s"` or in ms, sizes as `"1MiB"` or in bytes. */
export type SettingOptions = OptionFields<typeof TOP_SETTINGS> & {
  readonly [S in keyof Sections]?: OptionFields<Sections[S]> | undefined;
};

/** The name of a setting in such options: `http.body_limit` is `http.bodyLimit`. */
export function optionPath(path: string): string {
  return path.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** All values, nested: `settings.leader.leaseMs`, `settings.http.bodyLimitBytes`, `settings.worker.concurrency`. */
export type Settings = Fields<typeof TOP_SETTINGS> & {
  readonly [S in keyof Sections]: Fields<Sections[S]>;
};
