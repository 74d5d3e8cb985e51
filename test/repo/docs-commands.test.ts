/** Pages against the help of the command line: every command that they name is there, and they name every command. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CHECKS } from "../../src/cli/doctor/checks.ts";
import { EXIT } from "../../src/cli/failure.ts";
import { allPages, batonCommands, codeSpansIn, pageAt, tableOf, tablesOf } from "../support/markdown.ts";
import { runCli } from "../unit/cli/run-cli.ts";

const helpTexts = new Map<string, Promise<string>>();

/** The help of a command, or an empty text if there is no such command. */
function help(command: string): Promise<string> {
  let text = helpTexts.get(command);
  if (!text) {
    const args = command === "" ? [] : command.split(" ");
    // A command with another name has both in its usage.
    const words = ["baton", ...args].map((word) => `(?:[\\w-]+\\|)*${word}(?:\\|[\\w-]+)*`);
    const usage = new RegExp(`^Usage: ${words.join(" ")} `);
    text = runCli([...args, "--help"]).then(({ out }) => (usage.test(out) ? out : ""));
    helpTexts.set(command, text);
  }
  return text;
}

/** What is wrong with a command line, in words; null if nothing is. */
async function mistakeIn(line: string): Promise<string | null> {
  const words = line
    .replaceAll(/'[^']*'/g, "TEXT")
    .split(/\s+/)
    .slice(1);
  const path: string[] = [];
  for (const word of words) {
    if (!/^[a-z][a-z-]*$/.test(word) || !/\n[A-Z][\w -]*ommands:\n/.test(await help(path.join(" ")))) break;
    path.push(word);
    if ((await help(path.join(" "))) === "") return `there is no command ${path.join(" ")}`;
  }
  // `baton jobs` is `baton jobs list`.
  const helps = [path, [...path, "list"], []].map((command) => help(command.join(" ")));
  const text = (await Promise.all(helps)).join("\n");
  const unknown = words.find(
    (word) => /^--?[a-z]/.test(word) && !new RegExp(`(?<![\\w-])${word}(?![\\w-])`).test(text),
  );
  return unknown === undefined ? null : `${path.join(" ")} has no option ${unknown}`;
}

/** The commands in a help, each with its other names. */
async function commandsBelow(command: string): Promise<string[][]> {
  const sections = (await help(command))
    .split(/\n(?=[A-Z][\w -]*:\n)/)
    .filter((each) => /^[\w -]*ommands:/.test(each));
  return sections
    .flatMap((each) =>
      [...each.matchAll(/^ {2}([\w-]+(?:\|[\w-]+)*)/gm)].map((match) => match[1]!.split("|")),
    )
    .filter(([name]) => name !== "help");
}

/** `baton jobs retry`, and `cancel` in the same row: what a page says about a command stands in tables. */
function rowsOfCommands(path: string): { group: string; spans: string[] }[] {
  return tablesOf(pageAt(path))
    .flatMap(({ rows }) => rows)
    .map((cells) => codeSpansIn(cells.join(" ")))
    .filter(([first]) => /^baton [a-z]/.test(first ?? ""))
    .map((spans) => ({ group: spans[0]!.split(" ")[1]!, spans }));
}

function asCommandLine({ group, spans }: { group: string; spans: string[] }, span: string): string {
  if (span.startsWith("-")) return `${spans[0]} ${span}`;
  return /^(?:source <\()?baton /.test(span)
    ? span.replace(/^source <\((.*)\)$/, "$1")
    : `baton ${group} ${span}`;
}

const REFERENCES = ["README.md", "docs/cli.md"];

describe("the documentation of commands", () => {
  it("names only commands and options that exist", async () => {
    const mistakes: string[] = [];
    let seen = 0;
    for (const page of allPages()) {
      for (const line of batonCommands(page)) {
        seen++;
        const mistake = await mistakeIn(line);
        if (mistake !== null) mistakes.push(`${page.path}: ${line}: ${mistake}`);
      }
    }
    assert.ok(seen > 40, `${seen} commands`);
    assert.deepEqual(mistakes, []);
  });

  for (const path of REFERENCES) {
    it(`${path} names in a row only what the command of that row has`, async () => {
      const mistakes: string[] = [];
      for (const row of rowsOfCommands(path)) {
        for (const span of row.spans) {
          const mistake = await mistakeIn(asCommandLine(row, span));
          if (mistake !== null) mistakes.push(`${row.spans[0]}: ${span}: ${mistake}`);
        }
      }
      assert.deepEqual(mistakes, []);
    });
  }

  it("docs/cli.md names every command", async () => {
    const rows = rowsOfCommands("docs/cli.md");
    const missing: string[] = [];
    for (const names of await commandsBelow("")) {
      const own = rows.filter(({ group }) => names.includes(group));
      if (own.length === 0) missing.push(`baton ${names[0]}`);
      const words = own.flatMap(({ spans }) => spans.flatMap((span) => span.split(" ")));
      // A group without a word more is its list.
      const missingBelow = (await commandsBelow(names[0]!)).filter(
        (each) => !each.some((name) => words.includes(name)) && each[0] !== "list",
      );
      missing.push(...missingBelow.map((each) => `baton ${names[0]} ${each[0]}`));
    }
    assert.deepEqual(missing, []);
  });

  it("docs/cli.md lists every check of the doctor", () => {
    const { rows } = tableOf(pageAt("docs/cli.md"), "check");
    assert.deepEqual(
      rows.flatMap(([name]) => codeSpansIn(name!)),
      Object.keys(CHECKS),
    );
  });

  it("docs/operations.md lists every exit code, and docs/cli.md no other", () => {
    const codes: number[] = Object.values(EXIT);
    const { rows } = tableOf(pageAt("docs/operations.md"), "code");
    assert.deepEqual(
      rows.map(([code]) => Number(code)),
      codes,
    );
    const [, list] = /^\[Exit codes\]\(.*?\): (.*)$/m.exec(pageAt("docs/cli.md").text) ?? [];
    const named = [...list!.matchAll(/\d+/g)].map(([code]) => Number(code));
    assert.ok(named.length > 0);
    assert.deepEqual(
      named.filter((code) => !codes.includes(code)),
      [],
    );
  });
});

describe("the checks", () => {
  it("find commands wherever they stand", () => {
    const text =
      "`baton jobs list` and `batonette`\n```sh\nnpx baton start \\\n  --tasks x\nnode bin/baton.mjs status\n```\n```console\n$ baton tasks\nbaton is listening\n```";
    assert.deepEqual(batonCommands({ path: "docs/a.md", text }), [
      "baton start --tasks x",
      "baton status",
      "baton tasks",
      "baton is listening",
      "baton jobs list",
    ]);
  });

  it("find wrong commands and options", async () => {
    assert.equal(await mistakeIn("baton jobs logs -f ID"), null);
    assert.equal(await mistakeIn("baton submit hello '{\"--x\":1}' --wait"), null);
    assert.equal(await mistakeIn("baton jobs remove ID"), "there is no command jobs remove");
    assert.equal(await mistakeIn("baton stop"), "there is no command stop");
    assert.equal(await mistakeIn("baton start --task x"), "start has no option --task");
  });
});
