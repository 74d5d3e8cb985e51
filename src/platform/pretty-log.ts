/**
 * Turns the JSON lines of the log into lines for people:
 *
 *   [20:36:30.790] ERROR: a request failed {"path":"/jobs"}
 *       error: TypeError: x is not a function
 *           at …
 *
 * The fields are those of the JSON line, without the node and its role: a reader of this terminal knows them.
 */

import { styleText } from "node:util";

const COLOURS = { error: "red", warn: "yellow", info: "green", debug: "blue" } as const;
/** Where the serializer of errors puts what it knows (log.ts). */
const ERRORS = ["err", "error"] as const;
const INDENT = "    ";

/** Terminals obey control characters, and a message may quote a job. Line ends and tabs stay. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export interface LineStream {
  write(line: string): unknown;
}

export function prettyStream(destination: LineStream, coloured: boolean): LineStream {
  return { write: (line) => destination.write(prettyLine(line, coloured)) };
}

type Line = Record<string, unknown> & { readonly level: keyof typeof COLOURS };
type ErrorFields = Readonly<Record<string, unknown>>;

export function prettyLine(json: string, coloured: boolean): string {
  const { level, time, msg = "", node: _node, role: _role, ...fields } = JSON.parse(json) as Line;
  const paint = (colour: Parameters<typeof styleText>[0], text: string): string =>
    coloured ? styleText(colour, text, { validateStream: false }) : text;
  const traces: string[] = [];
  for (const name of ERRORS) {
    const error = fields[name];
    if (typeof error !== "object" || error === null) continue;
    const { type: _type, message, stack, ...more } = error as ErrorFields;
    traces.push(`${INDENT}${name}: ${indented(String(stack ?? message))}\n`);
    fields[name] = Object.keys(more).length > 0 ? more : undefined;
  }
  const rest = harmless(JSON.stringify(fields));
  const head = `[${timeOfDay(String(time))}] ${paint(COLOURS[level], level.toUpperCase())}: ${paint("cyan", harmless(String(msg)))}`;
  return `${head}${rest === "{}" ? "" : ` ${paint("gray", rest)}`}\n${traces.join("")}`;
}

function indented(text: string): string {
  return harmless(text).replaceAll("\n", `\n${INDENT}`);
}

function harmless(text: string): string {
  return text.replaceAll(CONTROLS, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** In the zone of the machine. */
function timeOfDay(iso: string): string {
  const at = new Date(iso);
  const [hours, minutes, seconds] = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) =>
    String(part).padStart(2, "0"),
  );
  return `${hours}:${minutes}:${seconds}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}
