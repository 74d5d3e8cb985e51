/**
 * Types the commands of a `console` block at a node that runs, and compares what they print with what the block shows. Ids, times and
 * durations are masked, and a line `…` stands for whatever follows. An id that the page shows in a later command becomes the one that the node gave.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { Readable } from "node:stream";
import { main } from "../../src/cli/main.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { caught } from "../unit/cli/run-cli.ts";
import { consoleSteps, type Block } from "./markdown.ts";
import { eventually } from "./wait.ts";

export interface Place {
  readonly cwd: string;
  /** What stands in samples, and what it is here. */
  readonly names: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string>>;
}

const ID = /[\w-]+-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const MASKS: readonly (readonly [RegExp, string])[] = [
  // Progress that is over before somebody looks is not shown.
  [/^\S+ \d+%.*\n/gm, ""],
  // Other tests run meanwhile.
  [/^port \d+ is in use, .*\n/gm, ""],
  [ID, "ID"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME"],
  [/\b\d+(?:\.\d+)?(?:ms|s|m|h|d)\b/g, "DURATION"],
  // Columns are as wide as what was masked in them.
  [/ +/g, " "],
  [/ $/gm, ""],
];

export async function runSample(block: Block, place: Place): Promise<void> {
  const names = new Map(place.names);
  for (const { command, output } of consoleSteps(block)) {
    const printed = await run(replaced(command, names), place);
    const [shown, all] = [masked(replaced(output, place.names)), masked(printed)];
    assert.equal(
      shown.at(-1) === "…" ? [...all.slice(0, shown.length - 1), "…"].join("\n") : all.join("\n"),
      shown.join("\n"),
      `${command}:\n${printed}`,
    );
    const given = printed.match(ID) ?? [];
    for (const [index, id] of (output.match(ID) ?? []).entries()) names.set(id, given[index] ?? id);
  }
}

/** Ours inside this process, which takes a tenth of the time; others by the shell. */
async function run(command: string, { cwd, environment }: Place): Promise<string> {
  const [, ours] = /^(?:npx )?baton (.*)$/.exec(command) ?? [];
  if (ours === undefined) {
    const line = command.replace(/^npx node\b/, `'${process.execPath}'`);
    const options = { cwd, env: { ...process.env, ...environment }, encoding: "utf8" } as const;
    // A reader types the next command when the job of the last one has ended.
    return eventually(line, () => {
      const { stdout } = spawnSync("sh", ["-c", line], options);
      return stdout.includes("NOT_FINISHED") ? null : stdout;
    });
  }
  const args = [...ours.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
  // A busy machine takes longer than the default for a first call.
  if (args[0] !== "start") args.push("--timeout", "60s");
  const { stream, text } = caught();
  await main(args, {
    out: stream,
    err: stream,
    input: Readable.from([]),
    environment,
    cwd,
    clock: systemClock,
  });
  return text();
}

function replaced(text: string, names: ReadonlyMap<string, string>): string {
  return [...names].reduce((done, [from, to]) => done.replaceAll(from, to), text);
}

function masked(text: string): string[] {
  return MASKS.reduce((done, [pattern, mask]) => done.replaceAll(pattern, mask), text)
    .trimEnd()
    .split("\n");
}
