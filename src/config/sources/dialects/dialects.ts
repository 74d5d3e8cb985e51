/** The configuration files of other systems that are read as they are. docs/compatibility.md says what each key becomes. */

import type { Entry, YamlDocument } from "../yaml-document.ts";
import { GHOTI } from "./ghoti.ts";
import { LANGID } from "./langid.ts";

/** The file of another system: known by its keys, and put into our words, each at its place. */
export interface Dialect {
  speaks(top: readonly Entry[]): boolean;
  read(document: YamlDocument, top: readonly Entry[]): void;
}

export const DIALECTS: readonly Dialect[] = [LANGID, GHOTI];

/** The only variable by which another system names its file. */
export const FOREIGN_FILE_VARIABLE = "LANGID_CLUSTER_CONFIG_FILE";
