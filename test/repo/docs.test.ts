import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { OPERATIONS } from "../../src/api/operation-table.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { VARIABLES } from "../../src/config/sources/environment.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { ERRORS } from "../../src/core/errors.ts";
import {
  batonCommands,
  blocksOf,
  brokenLinks,
  codeSpansOf,
  proseOf,
  type Page,
} from "../support/markdown.ts";
import { runCli } from "../unit/cli/run-cli.ts";
import { suiteDirectory } from "../support/node-cleanup.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const directory = suiteDirectory();

const pages: Page[] = ["*.md", "docs/**/*.md", "examples/**/*.md", "template/*.md"]
  .flatMap((pattern) => globSync(pattern, { cwd: root }))
  .map((path) => path.split(sep).join("/"))
  .sort()
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

function page(path: string): Page {
  const found = pages.find((each) => each.path === path);
  assert.ok(found, `${path} is there`);
  return found;
}

function blocks(language: string): { where: string; text: string }[] {
  return pages.flatMap((each) =>
    blocksOf(each)
      .filter((block) => block.language === language)
      .map(({ text, line }) => ({ where: `${each.path}:${line}`, text })),
  );
}

// ---------------------------------------------------------------- what may be named

const helps = new Map<string, Promise<string>>();

/** The help of a command, or an empty text if there is no such command. */
function help(command: string): Promise<string> {
  let text = helps.get(command);
  if (!text) {
    const args = command === "" ? [] : command.split(" ");
    // A command with another name has both in its usage.
    const words = ["baton", ...args].map((word) => `(?:\\w+\\|)*${word}(?:\\|\\w+)*`);
    const usage = new RegExp(`^Usage: ${words.join(" ")} `);
    text = runCli([...args, "--help"]).then(({ out }) => (usage.test(out) ? out : ""));
    helps.set(command, text);
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
    if (!/^[a-z]+$/.test(word) || !/\n[A-Z][\w -]*ommands:\n/.test(await help(path.join(" ")))) break;
    path.push(word);
    if ((await help(path.join(" "))) === "") return `there is no command ${path.join(" ")}`;
  }
  const text = `${await help(path.join(" "))}\n${await help("")}`;
  const unknown = words.find(
    (word) => /^--?[a-z]/.test(word) && !new RegExp(`(?<![\\w-])${word}(?![\\w-])`).test(text),
  );
  return unknown === undefined ? null : `${path.join(" ")} has no option ${unknown}`;
}

const settingNames = new Set<string>(SETTINGS.map(({ path }) => path));
const settingGroups = new Set(
  [...settingNames].filter((name) => name.includes(".")).map((name) => name.split(".")[0]!),
);
const variables = new Set([
  ...VARIABLES.keys(),
  "BATON_URL",
  "BATON_TOKEN",
  "BATON_TOKEN_FILE",
  "BATON_CONFIG",
]);

function unknownSettings(each: Page): string[] {
  const named = codeSpansOf(each).filter(
    (span) => /^[a-z]+\.[a-z_]+$/.test(span) && settingGroups.has(span.split(".")[0]!),
  );
  const read = [...each.text.matchAll(/\bBATON_[A-Z_]+/g)].map((match) => match[0]);
  return [
    ...named.filter((name) => !settingNames.has(name) && !/\.(?:ts|md|json)$/.test(name)),
    ...read.filter((name) => !variables.has(name)),
  ];
}

// ---------------------------------------------------------------- the pages

describe("the documentation", () => {
  it("was found", () => assert.ok(pages.length > 15, pages.map(({ path }) => path).join(" ")));

  it("has no link that leads nowhere", () => {
    assert.deepEqual(
      brokenLinks(pages, (path) => existsSync(join(root, path))),
      [],
    );
  });

  it("names only commands and options that exist", async () => {
    const mistakes: string[] = [];
    let seen = 0;
    for (const each of pages) {
      for (const line of batonCommands(each)) {
        seen++;
        const mistake = await mistakeIn(line);
        if (mistake !== null) mistakes.push(`${each.path}: ${line}: ${mistake}`);
      }
    }
    assert.ok(seen > 40, `${seen} commands`);
    assert.deepEqual(mistakes, []);
  });

  it("the table of commands in the README names only what each of them has", async () => {
    const rows = page("README.md")
      .text.split("\n")
      .filter((line) => line.startsWith("| `baton "));
    assert.ok(rows.length >= 8);
    for (const row of rows) {
      const [first, ...others] = [...row.matchAll(/`([^`]+)`/g)].map((match) => match[1]!);
      const [group, leaf] = first!.split(" ").slice(1) as [string, string | undefined];
      for (const other of others) {
        const line = other.startsWith("-")
          ? `${first} ${other}`
          : other.startsWith("baton ")
            ? other
            : `baton ${group} ${other}`;
        assert.equal(await mistakeIn(line), null, `${row}: ${line}`);
      }
      assert.equal(await mistakeIn(`baton ${group} ${leaf ?? ""}`), null, row);
    }
  });

  it("names every command in the README", async () => {
    const commands = [...(await help("")).matchAll(/^ {2}(\w+)[ |].*/gm)].map((match) => match[1]!);
    const missing = commands.filter(
      (name) => name !== "help" && !page("README.md").text.includes(`baton ${name}`),
    );
    assert.ok(commands.includes("submit"));
    assert.deepEqual(missing, []);
  });

  it("names only settings and variables that exist", () => {
    const unknown = pages.flatMap((each) => unknownSettings(each).map((name) => `${each.path}: ${name}`));
    assert.deepEqual(unknown, []);
  });

  it("names only npm scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const named = pages.flatMap(({ text }) =>
      [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map((match) => match[1]!),
    );
    assert.ok(named.length > 3);
    assert.deepEqual(
      named.filter((name) => scripts[name] === undefined),
      [],
    );
  });

  it("shows JSON that can be parsed", () => {
    const found = blocks("json");
    assert.ok(found.length > 20);
    for (const { where, text } of found) assert.doesNotThrow(() => JSON.parse(text), where);
  });

  it("shows configuration files that are valid", () => {
    const found = blocks("yaml");
    assert.ok(found.length >= 2);
    for (const [index, { where, text }] of found.entries()) {
      const configFile = join(directory, `config-${index}.yaml`);
      writeFileSync(configFile, text);
      assert.doesNotThrow(() => loadSettings({ configFile, environment: {} }), where);
    }
  });

  it("shows TypeScript that compiles", () => {
    const found = blocks("ts");
    assert.ok(found.length >= 6);
    symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
    const files = found.map(({ where, text }) => {
      const name = `${where.replaceAll(/\W/g, "-")}.ts`;
      writeFileSync(join(directory, name), `${text}\nexport {};\n`);
      return name;
    });
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      readonly exports: Readonly<Record<string, string>>;
    };
    const paths = Object.fromEntries(
      Object.entries(exports).map(([name, file]) => [name.replace(/^\./, "batonjs"), [join(root, file)]]),
    );
    const compilerOptions = { allowImportingTsExtensions: true, paths };
    writeFileSync(
      join(directory, "tsconfig.json"),
      JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, include: [], files }),
    );
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const args = [tsc, "--singleThreaded", "--project", directory];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });

  it("has a page for every decision in its list", () => {
    const listed = [...page("docs/decisions/README.md").text.matchAll(/\]\((\d{4}[\w-]+\.md)\)/g)].map(
      (match) => match[1]!,
    );
    const there = pages
      .map(({ path }) => /^docs\/decisions\/(\d.*)$/.exec(path)?.[1])
      .filter((name) => name !== undefined);
    assert.deepEqual(listed.sort(), there.sort());
    for (const name of there) {
      const { text } = page(`docs/decisions/${name}`);
      for (const part of ["Context", "Choice", "Given up", "Measured"])
        assert.match(text, new RegExp(`^## ${part}$`, "m"), name);
    }
  });
});

describe("docs/api.md", () => {
  it("has a heading for every operation, and none for others", () => {
    const headings = proseOf(page("docs/api.md"))
      .split("\n")
      .filter((line) => line.startsWith("### "));
    const documented = headings.flatMap((line) =>
      [...line.matchAll(/`([A-Z]+ [^`]+)`/g)].map((match) => match[1]!),
    );
    assert.deepEqual(documented.sort(), OPERATIONS.map(({ method, path }) => `${method} ${path}`).sort());
  });

  it("lists refusals with their status", () => {
    const rows = [...page("docs/api.md").text.matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \|/gm)];
    assert.ok(rows.length > 15);
    for (const [, status, code] of rows) {
      assert.equal(ERRORS[code as keyof typeof ERRORS]?.status, Number(status), code);
    }
  });
});

describe("the checks", () => {
  const planted = (text: string, path = "docs/a.md"): Page => ({ path, text });

  it("find links to missing files and headings", () => {
    const found = brokenLinks(
      [
        planted(
          "# One two\n[a](b.md) [b](a.md#one-two) [c](#nope) [d](https://x.example) `[e](z.md)`\n```\n[f](g.md)\n```",
        ),
      ],
      (path) => path === "docs/a.md",
    );
    assert.deepEqual(found, [
      "docs/a.md: b.md is not there",
      "docs/a.md: #nope has no such heading",
      "docs/a.md: z.md is not there",
    ]);
  });

  it("find commands wherever they stand", () => {
    const text =
      "`baton jobs list` and `batonette`\n```sh\nnpx baton start \\\n  --tasks x\nnode bin/baton.mjs status\n```\n```console\n$ baton tasks\nbaton is listening\n```";
    assert.deepEqual(batonCommands(planted(text)), [
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

  it("find settings and variables that do not exist", () => {
    assert.deepEqual(
      unknownSettings(planted("`worker.concurrency` `worker.threads` `node.ts` BATON_NAME BATON_FOO")),
      ["worker.threads", "BATON_FOO"],
    );
  });
});
