/** Settings from environment variables. An empty one counts as not set (`${PORT:-}`). A secret can be in a file: `BATON_SECRET_FILE`. */

import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { nearest } from "../../core/errors.ts";
import { environmentName, type Setting, SETTINGS } from "../settings.ts";
import { type Advice, adviceText, type Found, type SourceContent, whyUnreadable } from "../mistake.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Every variable that is read as a setting. `file`: it names a file that has the value. */
export const VARIABLES = new Map<string, { readonly row: Setting; readonly file: boolean }>();
for (const row of SETTINGS) {
  for (const name of [environmentName(row.path), row.variable]) {
    if (name === undefined) continue;
    VARIABLES.set(name, { row, file: false });
    if (mayBeFile(row)) VARIABLES.set(`${name}_FILE`, { row, file: true });
  }
}
const VARIABLE_BY_SINGLE = new Map(
  [...VARIABLES.keys()]
    .filter((variable) => variable.includes("__"))
    .map((variable) => [variable.replaceAll("__", "_"), variable]),
);

export function mayBeFile(row: Setting): boolean {
  return row.secret === true || row.kind === "store" || row.kind === "redis" || row.kind === "etcd";
}

export function readEnvironment(environment: Environment, cwd: string): SourceContent {
  const found: Found[] = [];
  const mistakes: string[] = [];
  const warnings: Advice[] = [];
  const saidBy = new Map<string, string>();
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith("BATON_") || value === undefined || value === "") continue;
    const meant = VARIABLES.get(variable);
    if (meant) {
      const other = saidBy.get(meant.row.path);
      saidBy.set(meant.row.path, variable);
      if (other !== undefined) {
        mistakes.push(`${other} and ${variable} both set ${meant.row.path}; set one of them`);
        continue;
      }
      const content = meant.file
        ? readSecretFile(variable, resolve(cwd, value), meant.row.ownerOnly)
        : { text: value };
      if ("mistake" in content) mistakes.push(content.mistake);
      else {
        if (content.warning) warnings.push(content.warning);
        found.push({ path: meant.row.path, value: content.text, source: { from: "environment", variable } });
      }
    } else if (variable.includes("__")) {
      // Two underscores are ours alone, so this was meant as a setting.
      const guess = nearest(variable, VARIABLES.keys());
      mistakes.push(`unknown variable ${variable}${guess ? `; did you mean ${guess}?` : ""}`);
    } else if (VARIABLE_BY_SINGLE.has(variable)) {
      // Mostly a warning: Kubernetes sets BATON_HTTP_PORT by itself for a service named baton-http.
      const meantName = VARIABLE_BY_SINGLE.get(variable)!;
      warnings.push({ message: `${variable} is ignored`, remedy: `did you mean ${meantName}?` });
    }
  }
  return { found, mistakes, warnings };
}

type SecretFile = { readonly text: string; readonly warning?: Advice } | { readonly mistake: string };

function readSecretFile(variable: string, path: string, ownerOnly = false): SecretFile {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (text === "") return { mistake: `${variable} names an empty file (${path})` };
    // Mostly a warning: Kubernetes and Docker mount secrets readable for all, in a container with one user.
    const open = process.platform !== "win32" && (statSync(path).mode & 0o004) !== 0;
    if (!open) return { text };
    const message = `${path} (${variable}) can be read by every user`;
    const warning = { message, remedy: `type: chmod 600 ${path}` };
    return ownerOnly
      ? { mistake: `${adviceText(warning)} (in Kubernetes, defaultMode: 0440)` }
      : { text, warning };
  } catch (error) {
    return { mistake: `${variable} cannot be read (${path}): ${whyUnreadable(error)}` };
  }
}
