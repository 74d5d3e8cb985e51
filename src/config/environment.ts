/** Settings from environment variables. An empty variable counts as not set: that is what `${PORT:-}` leaves. */

import { nearest } from "../core/errors.ts";
import { environmentName, SETTINGS } from "./settings.ts";
import type { Found } from "./source.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface EnvironmentContent {
  readonly found: readonly Found[];
  readonly mistakes: readonly string[];
  readonly warnings: readonly string[];
}

const PATH_BY_VARIABLE = new Map<string, string>(
  SETTINGS.map((row) => [environmentName(row.path), row.path]),
);
const VARIABLE_BY_SINGLE = new Map(
  [...PATH_BY_VARIABLE.keys()].map((variable) => [variable.replaceAll("__", "_"), variable]),
);

export function readEnvironment(environment: Environment): EnvironmentContent {
  const found: Found[] = [];
  const mistakes: string[] = [];
  const warnings: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith("BATON_") || value === undefined || value === "") continue;
    const path = PATH_BY_VARIABLE.get(variable);
    if (path) {
      found.push({ path, value, source: { from: "environment", variable } });
    } else if (variable.includes("__")) {
      // Two underscores are ours alone, so this was meant as a setting.
      const guess = nearest(variable, PATH_BY_VARIABLE.keys());
      mistakes.push(`unknown variable ${variable}${guess ? `; did you mean ${guess}?` : ""}`);
    } else if (VARIABLE_BY_SINGLE.has(variable)) {
      // Only a warning: Kubernetes sets BATON_HTTP_PORT by itself for a service named baton-http.
      warnings.push(`${variable} is ignored; did you mean ${VARIABLE_BY_SINGLE.get(variable)}?`);
    }
  }
  return { found, mistakes, warnings };
}
