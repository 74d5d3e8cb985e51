/**
 * Holds docs/compatibility.md to its word: the files, endpoints, settings, errors and names of code that it gives as the place of
 * something are there, its aliases of profiles are those of the code, and the systems that it names are named nowhere else.
 * Its links, commands and settings are checked with those of all pages, in docs.test.ts.
 */

import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { OPERATIONS } from "../../src/api/operation-table.ts";
import {
  mainProfile,
  PROFILE_ALIASES,
  profileDefaults,
  PROFILES,
} from "../../src/config/definitions/profiles.ts";
import { VARIABLES } from "../../src/config/sources/environment.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { ERRORS } from "../../src/core/errors.ts";
import { codeSpansIn, codeSpansOf, type Page, tablesOf } from "../support/markdown.ts";

const PAGE = "docs/compatibility.md";
const JOIN_SERVER = "src/peers/bully/joining/join-server.ts";
/** Where the systems may be named. The first two are the readers of their files and the aliases of profiles. */
const NAMES_ALLOWED = ["src/config/sources/dialects/", "src/config/definitions/profiles.ts", PAGE];

const root = fileURLToPath(new URL("../..", import.meta.url));

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

function files(...patterns: string[]): string[] {
  return patterns
    .flatMap((pattern) => globSync(pattern, { cwd: root, exclude: ["**/node_modules/**", "**/dist/**"] }))
    .map((path) => path.split(sep).join("/"))
    .filter((path) => statSync(join(root, path)).isFile())
    .sort();
}

const page: Page = { path: PAGE, text: read(PAGE) };

interface Row {
  readonly title: string;
  readonly cells: ReadonlyMap<string, string>;
}

/** The rows of all tables, each with its cells by the heading of their column. */
function rowsOf(each: Page): Row[] {
  return tablesOf(each).flatMap(({ head, rows }) =>
    rows.map((row) => ({
      title: row[0]!,
      cells: new Map(head.map((column, at) => [column, row[at] ?? ""])),
    })),
  );
}

// ---------------------------------------------------------------- what may be named as a place

const IS_PATH = /^(?:src|test|docs|deploy|examples|bench|scripts|bin|dashboard)(?:\/|$)/;
const IS_ROUTE = /^[A-Z]+ \//;

/** Those of the join server are no operations: it has a listener of its own. */
const managerRoutes = [...read(JOIN_SERVER).matchAll(/app\.get\("(\/\w+)"|#guarded\(app, "(\/\w+)"/g)].map(
  ([, get, post]) => (get === undefined ? `POST ${post!}` : `GET ${get}`),
);
const routes = new Set([...OPERATIONS.map(({ method, path }) => `${method} ${path}`), ...managerRoutes]);
const others = new Set<string>([
  ...SETTINGS.map(({ path }) => path),
  ...SETTINGS.flatMap(({ flag }) => flag ?? []),
  ...VARIABLES.keys(),
  ...Object.keys(ERRORS),
]);

/** Of files and folders. Channels are named on the page as they are, and in code as templates. */
function textOf(paths: readonly string[]): string {
  return paths
    .flatMap((path) => (path.endsWith(".ts") ? [path] : files(`${path}/**/*.ts`)))
    .map(read)
    .join("\n")
    .replaceAll("${", "{");
}

const allSources = textOf(["src"]);

/** The places in a cell that are not there. A name of code must be in the files beside it, if there are any. */
function missingPlaces(cell: string): string[] {
  const spans = codeSpansIn(cell);
  const beside = spans.filter((span) => span.startsWith("src/") && existsSync(join(root, span)));
  const text = beside.length > 0 ? textOf(beside) : allSources;
  return spans.filter((span) => {
    if (IS_PATH.test(span)) return !existsSync(join(root, span));
    if (IS_ROUTE.test(span)) return !routes.has(span);
    // docs.test.ts asks the command line.
    if (span.startsWith("baton ") || others.has(span)) return false;
    const escaped = span.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    return !new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`).test(text);
  });
}

// ---------------------------------------------------------------- the page

const rows = rowsOf(page);
const systems = [...page.text.matchAll(/^## (.+)$/gm)]
  .map((match) => match[1]!)
  .filter((heading) => heading !== "Names of profiles");

describe("docs/compatibility.md", () => {
  it("has a section for each of the five systems", () => assert.equal(systems.length, 5, systems.join()));

  it("names only places that are there", () => {
    const places = rows.filter(({ cells }) => cells.has("here"));
    assert.ok(places.length > 150, `${places.length} rows`);
    const missing = places.flatMap(({ title, cells }) => {
      const here = cells.get("here")!;
      assert.ok(here !== "", `${title} has a place, or says that there is none`);
      return missingPlaces(here).map((place) => `${title}: ${place}`);
    });
    assert.deepEqual(missing, []);
  });

  it("names a test for each place in a table with tests", () => {
    const tested = rows.filter(({ cells }) => cells.has("test"));
    assert.ok(tested.length > 100, `${tested.length} rows`);
    const wrong = tested.flatMap(({ title, cells }) => {
      const cell = cells.get("test")!;
      if (cell === "none" && cells.get("here") === "none") return [];
      const spans = codeSpansIn(cell);
      if (spans.length === 0) return [`${title}: no test`];
      return spans
        .filter((span) => !span.startsWith("test/") || !existsSync(join(root, span)))
        .map((span) => `${title}: ${span}`);
    });
    assert.deepEqual(wrong, []);
  });

  it("names no path elsewhere that is not there", () => {
    const paths = codeSpansOf(page).filter((span) => IS_PATH.test(span) && span.includes("/"));
    assert.deepEqual(
      paths.filter((path) => !existsSync(join(root, path))),
      [],
    );
  });

  it("lists the aliases of profiles, with what they set beyond their profile", () => {
    const listed = rows
      .filter(({ cells }) => cells.has("alias"))
      .map(({ cells }) =>
        ["alias", "profile", "beyond the profile"].flatMap((name) => codeSpansIn(cells.get(name)!)),
      );
    const expected = PROFILE_ALIASES.map((alias) => {
      const profile = mainProfile(alias);
      const more = Object.entries(profileDefaults(alias)).filter(([path]) => !(path in PROFILES[profile]));
      return [alias, profile, ...more.flat()];
    });
    assert.deepEqual(listed, expected);
  });

  it("is the only page that names those systems", () => {
    const names = new RegExp(`(?<![a-z])(?:${systems.join("|")})(?![a-z])`, "i");
    const searched = files(
      "*.md",
      "{src,docs,test,examples,deploy,scripts,bench,bin}/**/*",
      "dashboard/src/**/*",
    );
    assert.ok(searched.length > 1_000, `${searched.length} files`);
    const found = searched
      .filter((path) => !NAMES_ALLOWED.some((allowed) => path.startsWith(allowed)))
      .filter((path) => names.test(path) || names.test(read(path)));
    assert.deepEqual(found, []);
  });
});

describe("the checks", () => {
  it("find places that are not there", () => {
    const cell =
      "`src/core/ids.ts`, `src/nope.ts`, `GET /jobs/{id}`, `GET /nope`, `leader.lease`, `parseJobId`, `parseNothing`";
    assert.deepEqual(missingPlaces(cell), ["src/nope.ts", "GET /nope", "parseNothing"]);
    assert.deepEqual(
      missingPlaces("`POST /join`, `job.handoff.ack.{node}`, `NOT_LEADER`, `--store`, `BATON_NAME`"),
      [],
    );
    assert.deepEqual(missingPlaces("`decide`, `src/core/ids.ts`"), ["decide"]);
  });

  it("read the columns of a table", () => {
    const [row] = rowsOf({ path: PAGE, text: "| there | here |\n| --- | --- |\n| a | `b` |\n" });
    assert.deepEqual([row?.title, row?.cells.get("here")], ["a", "`b`"]);
  });
});
