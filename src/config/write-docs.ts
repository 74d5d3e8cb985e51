/** Makes docs/configuration.md from the table of settings: `npm run docs:settings`. */

import { writeFileSync } from "node:fs";
import { PROFILES } from "./profiles.ts";
import { environmentName, SETTING_BY_PATH, SETTINGS } from "./settings.ts";
import type { Setting } from "./settings.ts";

const HEAD = `# Configuration

<!-- Made by \`npm run docs:settings\` from src/config/settings.ts. Change it there. -->

A node needs no configuration. What you set is taken in this order, the later winning over the earlier:

1. the defaults below, and those of the \`profile\` in their place;
2. a file: \`--config FILE\`, else \`BATON_CONFIG\`, else \`baton.yaml\`, \`baton.yml\` or \`baton.json\` in the working
   directory;
3. environment variables (an empty one counts as not set);
4. flags of \`baton start\`.

\`baton config check\` tells every mistake at once, with file, line and column. \`baton config print --with-source\` shows
each value and where it comes from.

\`\`\`yaml
name: node-1
tasks: [./tasks]
http:
  port: 8420
worker:
  concurrency: 20
\`\`\`

- **Durations** have a unit: \`500ms\`, \`30s\`, \`5m\`, \`1h\`, \`7d\`. A bare number is refused.
- **Sizes** too: \`512KiB\`, \`1MiB\`, \`10MB\`.
- **Lists** are YAML lists in a file and have commas in a variable; a flag may be given once for each entry.
- **Paths** in a file are taken from the file's directory, others from the working directory.
- Names that do not exist are refused, with the nearest one that does.

Some relations are checked: \`leader.lease\` is longer than \`leader.renew\` + \`leader.margin\`, \`worker.lease\` is longer than
twice \`worker.renew\`, \`drain.timeout\` is longer than \`drain.cleanup\`, and \`node.dead_after\` is at least twice \`node.heartbeat\`.
A node with an embedded store has the role \`scheduler\` and needs no other nodes.

## A cluster on one database

The same line on every machine, and the nodes are one cluster:

\`\`\`yaml
store: postgres://baton:secret@db.internal:5432/baton
http:
  host: 0.0.0.0
cluster:
  minimum_nodes: 3
\`\`\`

The password is not shown by \`baton config\`, in logs or in errors.

## Profiles

A profile puts other defaults in place; what you set yourself wins. \`lan\` is what you find below.

${profilesTable()}
`;

const SECTION_TITLES: Readonly<Record<string, string>> = {
  "": "The node",
  http: "HTTP",
  worker: "Worker",
  jobs: "Jobs",
  retry: "Retries",
  leader: "Leadership",
  postgres: "PostgreSQL",
  cluster: "The cluster",
  node: "Membership",
  functions: "Functions",
  drain: "Stopping",
  retention: "Keeping finished jobs",
  log: "Logs",
};

export function configurationPage(): string {
  const sections = Map.groupBy<string, Setting>(SETTINGS, (row) =>
    row.path.includes(".") ? row.path.split(".")[0]! : "",
  );
  const pages = [...sections].map(
    ([section, rows]) => `## ${SECTION_TITLES[section] ?? section}\n\n${rows.map(entry).join("\n")}`,
  );
  return [HEAD, ...pages].join("\n");
}

function entry(row: Setting): string {
  const range = [
    row.min === undefined ? "" : `at least ${row.min}`,
    row.max === undefined ? "" : `at most ${row.max}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
  const facts = [
    kindText(row),
    `default ${row.defaultIs ?? defaultText(row)}`,
    ...(range === "" ? [] : [range]),
    `\`${environmentName(row.path)}\``,
    ...(row.flag ? [`\`${row.flag}\``] : []),
  ];
  const smaller = row.smaller ? `\n  *If smaller:* ${row.smaller}` : "";
  return `- **\`${row.path}\`** (${facts.join("; ")})\n  ${row.about}${smaller}\n`;
}

function kindText(row: Setting): string {
  if (row.kind === "store") return "`sqlite` \\| `memory` \\| `postgres://…`";
  const choices = row.values?.map((value) => `\`${value}\``).join(" \\| ");
  if (choices === undefined) return row.kind;
  return row.kind === "list" ? `list of ${choices}` : choices;
}

function profilesTable(): string {
  const rows = Object.entries(PROFILES.forge).map(([path, value]) => {
    const standard = String(SETTING_BY_PATH.get(path)!.default);
    return `| \`${path}\` | \`${standard}\` | \`${value}\` |`;
  });
  return ["| setting | `lan` | `forge` |", "| --- | --- | --- |", ...rows].join("\n");
}

function defaultText(row: Setting): string {
  if (Array.isArray(row.default)) return row.default.length === 0 ? "empty" : row.default.join(", ");
  return `\`${String(row.default)}\``;
}

if (import.meta.main)
  writeFileSync(new URL("../../docs/configuration.md", import.meta.url), configurationPage());
