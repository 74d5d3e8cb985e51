import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { OPERATIONS } from "../../src/api/operation-table.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { VARIABLES } from "../../src/config/sources/environment.ts";
import { SETTING_BY_PATH } from "../../src/config/settings.ts";
import { ERRORS } from "../../src/core/errors.ts";
import {
  allPages,
  blocksOf,
  brokenLinks,
  codeSpansOf,
  type Page,
  pageAt,
  proseOf,
} from "../support/markdown.ts";
import { suiteDirectory } from "../support/node-cleanup.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const directory = suiteDirectory();

const pages = allPages();

function blocks(language: string): { where: string; text: string }[] {
  return pages.flatMap((each) =>
    blocksOf(each)
      .filter((block) => block.language === language)
      .map(({ text, line }) => ({ where: `${each.path}:${line}`, text })),
  );
}

// ---------------------------------------------------------------- what may be named

/** First words of names with a dot that are no settings: events, tables, members. Files are known by their ends. */
const OTHER_NAMES = new Set(
  "baton boss context coordinator error job load module process schedules transport write".split(" "),
);
const FILE = /\.(?:c?js|db|exe|json|md|mjs|ts|tsx|xml|ya?ml)$/;
const variables = new Set([
  ...VARIABLES.keys(),
  "BATON_URL",
  "BATON_TOKEN",
  "BATON_TOKEN_FILE",
  "BATON_CONFIG",
]);

function unknownSettings(each: Page): string[] {
  const named = codeSpansOf(each).filter((span) => /^[a-z]+\.[a-z_]+$/.test(span) && !FILE.test(span));
  const read = [...each.text.matchAll(/\bBATON_[A-Z_]+/g)].map((match) => match[0]);
  return [
    ...named.filter((name) => !SETTING_BY_PATH.has(name) && !OTHER_NAMES.has(name.split(".")[0]!)),
    ...read.filter((name) => !variables.has(name)),
  ];
}

/** What is said to be a default, as in `` `drain.timeout` (25 s) ``, and is another. */
function wrongDefaults(each: Page): string[] {
  const said = proseOf(each).matchAll(
    /`([a-z]+\.[a-z_]+)`(?: \(|, )(\d[\d,.]*)(?: ?(ms|s|min|h|days))?(?=[),;])/g,
  );
  return [...said].flatMap(([text, path, number, unit = ""]) => {
    const value = `${number!.replaceAll(",", "")}${unit.replace(/^(m|d)(?:in|ays)$/, "$1")}`;
    const { default: is } = SETTING_BY_PATH.get(path!) ?? {};
    return String(is) === value ? [] : [`${text}, which is ${String(is)}`];
  });
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

  it("names only settings and variables that exist", () => {
    const unknown = pages.flatMap((each) => unknownSettings(each).map((name) => `${each.path}: ${name}`));
    assert.deepEqual(unknown, []);
  });

  it("tells the defaults of settings", () => {
    const wrong = pages.flatMap((each) => wrongDefaults(each).map((said) => `${each.path}: ${said}`));
    assert.deepEqual(wrong, []);
  });

  it("names only npm scripts that exist", () => {
    const scriptsOf = (file: string): Record<string, string> =>
      (JSON.parse(readFileSync(join(root, file), "utf8")) as { scripts: Record<string, string> }).scripts;
    const scripts = { ...scriptsOf("bench/peers/package.json"), ...scriptsOf("package.json") };
    const named = pages.flatMap(({ text }) =>
      [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map((match) => match[1]!),
    );
    assert.ok(named.length > 3);
    assert.deepEqual(
      named.filter((name) => scripts[name] === undefined),
      [],
    );
  });

  it("says of every sample in which language it is", () => {
    const known = "console ini js json powershell python sh sql text ts yaml".split(" ");
    const others = pages.flatMap((each) =>
      blocksOf(each)
        .filter(({ language }) => !known.includes(language))
        .map(({ line, language }) => `${each.path}:${line}: ${language === "" ? "none" : language}`),
    );
    assert.deepEqual(others, []);
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

  it("lists every page in the README or in CONTRIBUTING.md", () => {
    const lists = pageAt("README.md").text + pageAt("CONTRIBUTING.md").text;
    const missing = pages
      .map(({ path }) => path)
      .filter((path) => /^docs\/[^/]+$/.test(path) && !lists.includes(`](${path})`));
    assert.deepEqual(missing, []);
  });

  it("has every page that a program names", () => {
    const texts = globSync(
      "{bench,bin,dashboard/src,deploy,examples,scripts,src}/**/*.{mjs,py,ts,tsx,yaml,yml}",
      {
        cwd: root,
        exclude: ["**/node_modules/**", "bench/results/**"],
      },
    ).map((path) => readFileSync(join(root, path), "utf8"));
    const named = texts.flatMap((text) => text.match(/(?<![\w-]\/)\bdocs\/[\w/-]+\.md(?:#[\w-]+)?/g) ?? []);
    assert.ok(named.length > 20);
    const links = { path: "programs", text: named.map((name) => `[a page](${name})`).join("\n") };
    assert.deepEqual(
      brokenLinks([...pages, links], (path) => existsSync(join(root, path))),
      [],
    );
  });

  it("has a page for every decision in its list", () => {
    const listed = [...pageAt("docs/decisions/README.md").text.matchAll(/\]\((\d{4}[\w-]+\.md)\)/g)].map(
      (match) => match[1]!,
    );
    const there = pages
      .map(({ path }) => /^docs\/decisions\/(\d.*)$/.exec(path)?.[1])
      .filter((name) => name !== undefined);
    assert.deepEqual(listed.sort(), there.sort());
    for (const name of there) {
      const { text } = pageAt(`docs/decisions/${name}`);
      for (const part of ["Context", "Choice", "Given up", "Measured"])
        assert.match(text, new RegExp(`^## ${part}$`, "m"), name);
    }
  });
});

describe("docs/api.md", () => {
  it("has a heading for every operation, and none for others", () => {
    const headings = proseOf(pageAt("docs/api.md"))
      .split("\n")
      .filter((line) => line.startsWith("### "));
    const documented = headings.flatMap((line) =>
      [...line.matchAll(/`([A-Z]+ [^`]+)`/g)].map((match) => match[1]!),
    );
    assert.deepEqual(documented.sort(), OPERATIONS.map(({ method, path }) => `${method} ${path}`).sort());
  });

  it("lists refusals with their status", () => {
    const rows = [...pageAt("docs/api.md").text.matchAll(/^\| (\d{3}) \| `([A-Z_]+)` \|/gm)];
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

  it("find settings and variables that do not exist", () => {
    assert.deepEqual(
      unknownSettings(planted("`worker.concurrency` `worker.threads` `node.ts` BATON_NAME BATON_FOO")),
      ["worker.threads", "BATON_FOO"],
    );
  });
});
