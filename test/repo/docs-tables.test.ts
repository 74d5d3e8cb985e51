/** Trees and tables of pages against what they are about: folders, files, backends, settings, tables, roles, scripts. */

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, matchesGlob, posix, sep } from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { SETTING_BY_PATH } from "../../src/config/settings.ts";
import { ERRORS } from "../../src/core/errors.ts";
import { LEADER_ROLES } from "../../src/core/leadership/term.ts";
import { NODE_ROLES } from "../../src/core/node.ts";
import { METRICS } from "../../src/observe/metrics/metric-table.ts";
import { MIGRATIONS } from "../../src/store/postgres/schema.ts";
import { backendOf } from "../support/architecture.ts";
import {
  allPages,
  blocksOf,
  codeSpansIn,
  codeSpansOf,
  pageAt,
  tableOf,
  tablesOf,
} from "../support/markdown.ts";
import { LAYERS } from "../support/tree-rules.ts";

const root = join(import.meta.dirname, "../..");
const pages = allPages();
const architecture = pageAt("docs/architecture.md");
const contributing = pageAt("CONTRIBUTING.md");
const postgres = pageAt("docs/postgres.md");

/** Files of the repository, from its root and with slashes. */
const files = globSync(
  ["*.*", ".*", "{.github,bench,bin,dashboard,deploy,docs,examples,scripts,src,template,test}/**"],
  {
    cwd: root,
    withFileTypes: true,
    exclude: (entry) => /^(?:node_modules|dist|output|results|\.git|\.baton)$/.test(entry.name),
  },
)
  .filter((entry) => entry.isFile())
  .map((entry) => posix.relative(slashes(root), slashes(join(entry.parentPath, entry.name))));

function slashes(path: string): string {
  return path.split(sep).join("/");
}

/** The folders in a folder that have files, to a depth. */
function foldersIn(folder: string, depth: number): string[] {
  const below = files
    .filter((file) => file.startsWith(`${folder}/`))
    .map((file) => file.split("/").slice(1, -1));
  const found = below.flatMap((path) =>
    path.slice(0, depth).map((_, index) => path.slice(0, index + 1).join("/")),
  );
  return [...new Set(found)].sort();
}

/**
 * Folders of a drawn tree: a line begins with its folders, and those that it names further on are inside each of them.
 */
function drawnFolders(tree: string): string[] {
  const found: string[] = [];
  const parents: string[] = [];
  for (const line of tree.split("\n")) {
    const [, indent, own] = /^( *)((?:[\w-]+\/ ?)+)/.exec(line) ?? [];
    if (indent === undefined || own === undefined) continue;
    const depth = indent.length / 2;
    const parent = parents.slice(0, depth).join("/");
    const folders = own
      .trim()
      .split(" ")
      .map((name) => posix.join(parent, name.slice(0, -1)));
    const inside = [...line.slice(indent.length + own.length).matchAll(/(?<=\s)([\w-]+)\/(?![\w/])/g)];
    found.push(...folders, ...folders.flatMap((folder) => inside.map(([, name]) => `${folder}/${name}`)));
    parents.splice(depth, Infinity, own.trim().split(" ")[0]!.slice(0, -1));
  }
  return found;
}

function cell(row: readonly string[], index: number): string[] {
  return codeSpansIn(row[index]!);
}

describe("docs/architecture.md", () => {
  const tree = blocksOf(architecture).find(({ text }) => text.startsWith("src/\n"))!;
  const drawn = drawnFolders(tree.text)
    .filter((folder) => folder !== "src")
    .map((folder) => folder.slice("src/".length));

  it("draws every folder of src to the second level", () => {
    assert.deepEqual(
      foldersIn("src", 2).filter((folder) => !drawn.includes(folder)),
      [],
    );
  });

  it("draws no other folder", () => {
    assert.deepEqual(
      drawn.filter((folder) => !foldersIn("src", 9).includes(folder)),
      [],
    );
  });

  it("names the backends of each interface, and no other", () => {
    const named = tableOf(architecture, "interface").rows.flatMap((row) => {
      const port = posix.dirname(cell(row, 0)[0]!);
      return cell(row, 2)
        .filter((name) => !name.endsWith("/"))
        .map((name) => (name === "bully" ? "peers/bully" : `${port}/${name}`));
    });
    const there = new Set(files.map(backendOf).filter((backend) => backend !== null));
    assert.deepEqual([...new Set(named)].sort(), [...there].sort());
  });

  it("selects fabrics by settings that exist, from backends that exist", () => {
    const backends = new Set(files.map(backendOf).map((backend) => backend?.split("/")[1]));
    for (const row of tableOf(architecture, "setting", "store").rows) {
      const settings = cell(row, 0).map((span) => span.split(":")[0]!);
      const unknown = settings.filter((path) => !SETTING_BY_PATH.has(path));
      assert.deepEqual(unknown, []);
      assert.deepEqual(
        row
          .slice(1)
          .flatMap(codeSpansIn)
          .filter((name) => !backends.has(name)),
        [],
      );
    }
  });

  it("lists the files of each layer", () => {
    const { rows } = tableOf(architecture, "layer", "files");
    assert.deepEqual(
      rows.map(([layer]) => layer),
      LAYERS,
    );
    for (const row of rows) {
      const own = files.filter((file) => new RegExp(`^src/node/${row[0]}(?:-[\\w-]+)?\\.ts$`).test(file));
      assert.deepEqual(cell(row, 1).sort(), own.map((file) => posix.basename(file)).sort());
    }
  });

  it("lists the duties of the leader roles", () => {
    const { rows } = tableOf(architecture, "leader role", "duty");
    assert.deepEqual(
      rows.flatMap((row) => cell(row, 0)),
      LEADER_ROLES,
    );
    const layers = files.filter((file) => /^src\/node\/(?:duties|work-push)\.ts$/.test(file));
    const code = layers.map((file) => readFileSync(join(root, file), "utf8")).join("\n");
    const made = [...code.matchAll(/\b(\w+): (?:\(term: Term, |[\w.]+\.duty\b)|\bduty\(\s*"(\w+)"/g)].map(
      ([, key, name]) => name ?? key!,
    );
    assert.deepEqual([...new Set(rows.flatMap((row) => cell(row, 1)))].sort(), [...new Set(made)].sort());
  });
});

describe("CONTRIBUTING.md", () => {
  it("has a row for every folder", () => {
    const [table] = tablesOf(contributing);
    const named = table!.rows.flatMap((row) => {
      const spans = cell(row, 0);
      const parent = spans[0]!.split("/").length > 1 ? `${posix.dirname(spans[0]!)}/` : "";
      return spans.map((span) => (span.includes("/") ? span : `${parent}${span}`));
    });
    const top = [...new Set(files.filter((file) => file.includes("/")).map((file) => file.split("/")[0]!))];
    const split = ["src", "test"];
    const there = [
      ...top.filter((name) => !split.includes(name)),
      ...split.flatMap((name) => foldersIn(name, 1).map((each) => `${name}/${each}`)),
    ];
    assert.deepEqual(named.sort(), there.sort());
  });

  it("names every npm script", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: object };
    const all = pages.map(({ text }) => text).join("\n");
    const missing = Object.keys(scripts).filter(
      (name) => !new RegExp(`npm (?:run )?${name}(?![\\w:-])`).test(all),
    );
    assert.deepEqual(missing, ["prepare"]);
  });
});

describe("docs/postgres.md", () => {
  it("lists every table", () => {
    const { rows } = tableOf(postgres, "table");
    const made = MIGRATIONS.flatMap(({ up }) => up).flatMap((sql) =>
      [...sql.matchAll(/CREATE (?:UNLOGGED )?TABLE baton\.(\w+)/g)].map(([, name]) => name!),
    );
    assert.ok(made.length > 10);
    assert.deepEqual(rows.flatMap((row) => cell(row, 0)).sort(), ["migration", ...made].sort());
  });

  it("lists the roles of nodes and of leaders", () => {
    assert.deepEqual(
      tableOf(postgres, "`--roles`")
        .rows.flatMap((row) => cell(row, 0))
        .sort(),
      NODE_ROLES.toSorted(),
    );
    assert.deepEqual(
      tableOf(postgres, "leader role", "advisory lock").rows.flatMap((row) => cell(row, 0)),
      LEADER_ROLES,
    );
  });
});

describe(".github/labeler.yml", () => {
  it("has a topic for every folder, and none for a folder that is gone", () => {
    const text = readFileSync(join(root, ".github/labeler.yml"), "utf8");
    const rules = Object.values(
      parse(text) as Record<string, { "changed-files": Record<string, string[]>[] }[]>,
    );
    const globs = rules.flatMap((topic) =>
      topic.flatMap((rule) => rule["changed-files"].flatMap((each) => Object.values(each).flat())),
    );
    assert.deepEqual(
      globs.filter((glob) => !files.some((file) => matchesGlob(file, glob))),
      [],
    );
    const inFolders = files.filter(
      (file) => /^(?!src\/[^/]+$).*\//.test(file) && !file.startsWith(".github/"),
    );
    assert.deepEqual(
      inFolders.filter((file) => !globs.some((glob) => matchesGlob(file, glob))),
      [],
    );
  });
});

describe("CHANGELOG.md", () => {
  it("has a line for each change, below its version and section", () => {
    const [, ...lines] = pageAt("CHANGELOG.md")
      .text.slice(pageAt("CHANGELOG.md").text.indexOf("\n## "))
      .trim()
      .split("\n");
    const known =
      /^$|^- .{1,400}$|^## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d$|^### (?:Added|Changed)$|^#### [A-Z]|^This will be /;
    assert.deepEqual(
      lines.filter((line) => !known.test(line)),
      [],
    );
  });
});

describe("all pages", () => {
  it("name only source files that exist", () => {
    const missing = pages.flatMap((page) =>
      codeSpansOf(page)
        // Those of a reader's own program are in `tasks/`, `mail/` or `./`.
        .filter((span) => /^(?!\.\/|tasks\/|mail\/)[\w./-]+\.tsx?$/.test(span))
        .filter((span) => !files.some((file) => `/${file}`.endsWith(`/${span}`)))
        .map((span) => `${page.path}: ${span}`),
    );
    assert.deepEqual(missing, []);
  });

  it("name only metrics that exist", () => {
    const known = new Set(Object.keys(METRICS));
    const named = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bbaton_[a-z_]+[a-z]\b/g)].map(([name]) => ({ path, name })),
    );
    assert.ok(named.length > 10);
    assert.deepEqual(
      named.filter(({ name }) => !known.has(name)),
      [],
    );
  });

  it("give refusals with the status that they have", () => {
    const wrong = pages.flatMap((page) =>
      codeSpansOf(page).flatMap((span) => {
        const [, status, code] = /^(\d{3}) ([A-Z_]+)$/.exec(span) ?? [];
        const known = ERRORS[code as keyof typeof ERRORS] as { status: number } | undefined;
        return code === undefined || known?.status === Number(status) ? [] : [`${page.path}: ${span}`];
      }),
    );
    assert.deepEqual(wrong, []);
  });

  it("name only settings that exist in a column of settings", () => {
    const wrong = pages.flatMap((page) =>
      tablesOf(page).flatMap(({ head, rows }) => {
        const column = head.indexOf("setting");
        return column < 0
          ? []
          : rows
              .flatMap((row) => cell(row, column))
              .filter((span) => !SETTING_BY_PATH.has(span.split(":")[0]!))
              .map((span) => `${page.path}: ${span}`);
      }),
    );
    assert.deepEqual(wrong, []);
  });
});
