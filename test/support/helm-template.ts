/**
 * Renders our Helm chart without Helm: the part of its template language that the chart uses, and an error for anything else. A value
 * that is missing is an error too, where Helm would write nothing.
 */

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";

type Values = Readonly<Record<string, any>>;

export function renderChart(chart: string, release: string, given: Values): string[] {
  const values = merged(parse(readFileSync(join(chart, "values.yaml"), "utf8")) as Values, given);
  const { appVersion } = parse(readFileSync(join(chart, "Chart.yaml"), "utf8")) as { appVersion: string };
  const scope = { Values: values, Release: { Name: release }, Chart: { AppVersion: appVersion } };
  return globSync("templates/*.yaml", { cwd: chart }).map((file) =>
    render(readFileSync(join(chart, file), "utf8"), scope),
  );
}

function merged(base: Values, over: Values): Values {
  const isMap = (value: unknown): value is Values => typeof value === "object" && value !== null;
  const entries = Object.entries(over).map(([key, value]) => [
    key,
    isMap(value) && isMap(base[key]) ? merged(base[key], value) : value,
  ]);
  return { ...base, ...Object.fromEntries(entries) };
}

function render(template: string, scope: Values): string {
  // {{- removes the white space before it.
  const parts = template.replaceAll(/\s*\{\{-/g, "{{").split(/\{\{\s*(.*?)\s*\}\}/s);
  const [text, rest] = block(parts, scope);
  if (rest.length > 0) throw new Error(`{{ ${rest[0]} }} ends nothing`);
  return text;
}

/** Up to the `else` or `end` that belongs to this block, which is the first of what is left. */
function block(parts: readonly string[], scope: Values): [string, readonly string[]] {
  let text = parts[0]!;
  let at = 1;
  while (at < parts.length) {
    const action = parts[at]!;
    if (action === "end" || action === "else") return [text, parts.slice(at)];
    const opened = /^(if|range) (.*)$/.exec(action);
    if (!opened) {
      text += String(evaluated(action, scope)) + parts[at + 1]!;
      at += 2;
      continue;
    }
    const [inner, rest] = branches(opened[1]!, opened[2]!, parts.slice(at + 1), scope);
    text += inner + rest[0]!;
    at = parts.length - rest.length + 1;
  }
  return [text, []];
}

function branches(
  kind: string,
  condition: string,
  parts: readonly string[],
  scope: Values,
): [string, readonly string[]] {
  if (kind === "range") {
    const [, name, value, list] = /^(\$\w+), (\$\w+) := (.*)$/.exec(condition)!;
    const rows = Object.entries(evaluated(list!, scope) as Values);
    const rendered = rows.map(([key, item]) => block(parts, { ...scope, [name!]: key, [value!]: item })[0]);
    const [, rest] = skip(parts);
    return [rendered.join(""), rest.slice(1)];
  }
  const negated = condition.startsWith("not ");
  const holds = Boolean(evaluated(negated ? condition.slice(4) : condition, scope)) !== negated;
  const [yes, afterYes] = holds ? block(parts, scope) : skip(parts);
  if (afterYes[0] !== "else") return [yes, afterYes.slice(1)];
  const [no, afterNo] = holds ? skip(afterYes.slice(1)) : block(afterYes.slice(1), scope);
  return [yes + no, afterNo.slice(1)];
}

/** A block that is left out. */
function skip(parts: readonly string[]): [string, readonly string[]] {
  let depth = 0;
  for (let at = 1; at < parts.length; at += 2) {
    const action = parts[at]!;
    if (/^(?:if|range) /.test(action)) depth++;
    else if (depth === 0 && (action === "end" || action === "else")) return ["", parts.slice(at)];
    else if (action === "end") depth--;
  }
  throw new Error("a block has no end");
}

function evaluated(action: string, scope: Values): unknown {
  const [first, ...pipes] = action.split(/\s*\|\s*/) as [string, ...string[]];
  const [verb, ...words] = first.split(/\s+/) as [string, ...string[]];
  let value: unknown;
  if (verb === "add") value = words.reduce((sum, word) => sum + Number(valueOf(word, scope)), 0);
  else if (verb === "toYaml") value = stringify(valueOf(words[0]!, scope)).trimEnd();
  else if (words.length === 0) value = valueOf(verb, scope);
  else throw new Error(`{{ ${action} }} is not understood`);
  for (const pipe of pipes) {
    const [name, argument] = pipe.split(/\s+/) as [string, string];
    if (name === "default") value = value === "" ? valueOf(argument, scope) : value;
    else if (name === "nindent")
      value = `\n${String(value)}`.replaceAll("\n", `\n${" ".repeat(Number(argument))}`);
    else throw new Error(`{{ ${action} }} is not understood`);
  }
  return value;
}

function valueOf(word: string, scope: Values): unknown {
  if (/^\d+$/.test(word)) return Number(word);
  const path = word.startsWith("$") ? [word] : word.slice(1).split(".");
  let value: any = scope;
  for (const step of path) value = value?.[step];
  if (value === undefined) throw new Error(`${word} has no value`);
  return value;
}
