/** Writes docs/configuration.md from the table of settings: `npm run docs:settings`. */

import { writeFileSync } from "node:fs";
import { mayBeFile } from "../src/config/sources/environment.ts";
import { PROFILE_NAMES, PROFILES } from "../src/config/definitions/profiles.ts";
import { environmentName, type Setting, SETTING_BY_PATH, SETTINGS } from "../src/config/settings.ts";

const HEAD = `# Configuration

<!-- Made by \`npm run docs:settings\` from src/config/definitions. Change it there. -->

A node needs no configuration. What you set is taken in this order, the later winning over the earlier:

1. the defaults below, and those of the \`profile\` in their place;
2. a file: \`--config FILE\`, else \`BATON_CONFIG\`, else the variable of another system ([compatibility.md](compatibility.md)),
   else \`baton.yaml\`, \`baton.yml\`, \`baton.json\` or \`cluster_config.json\` in the working directory;
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
- **Maps** are YAML maps in a file; a variable or a flag has JSON, or \`a=http://10.0.0.1:8420,b=http://10.0.0.2:8420\`.
- **Secrets** are never shown. The variable of a secret, or of \`store\`, with \`_FILE\` behind it names a file that has it:
  \`BATON_SECRET_FILE=/run/secrets/baton\`.
- **Paths** in a file are taken from the file's directory, others from the working directory.
- Names that do not exist are refused, with the nearest one that does.

Some relations are checked: \`leader.lease\` is longer than \`leader.renew\` + \`leader.margin\`, \`worker.lease\` is longer than
twice \`worker.renew\`, \`drain.timeout\` is longer than \`drain.cleanup\`, and \`node.dead_after\` is at least twice \`node.heartbeat\` and, among peers, at least
\`peers.health_interval\` + \`peers.heartbeat_timeout\`. A node alone with an embedded store has the role \`scheduler\` and needs
no other nodes.

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

## A cluster without a database

The same file on every machine, but for the name:

\`\`\`yaml
name: node-a
nodes:
  node-a: http://10.0.0.1:8420
  node-b: http://10.0.0.2:8420
  node-c: http://10.0.0.3:8420
\`\`\`

and one secret, made by \`baton secret create\`, in \`BATON_SECRET\` or \`BATON_SECRET_FILE\`. Joining instead of listing, DNS names, and what else there is to know: [peers.md](peers.md). Files of other systems are read as they are: [compatibility.md](compatibility.md).

## Profiles

A profile puts other defaults in place; what you set yourself wins. \`lan\` is what you find below; an empty cell is the same.
Other names that stay accepted are in [compatibility.md](compatibility.md#names-of-profiles).

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
  redis: "Redis",
  etcd: "etcd",
  dispatch: "Dispatch",
  handoff: "Handing jobs over",
  rebalance: "Rebalancing",
  cluster: "The cluster",
  node: "Membership",
  manager: "The join server",
  placement: "Placement of new jobs",
  peers: "Calls between nodes",
  functions: "Functions",
  agents: "Agents",
  access: "Access",
  controller: "The node-controller",
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
    ...[environmentName(row.path), ...(row.variable ? [row.variable] : [])].map((name) => `\`${name}\``),
    ...(mayBeFile(row) ? [`\`${row.variable ?? environmentName(row.path)}_FILE\``] : []),
    ...(row.flag ? [`\`${row.flag}\``] : []),
  ];
  const smaller = row.smaller ? `\n  *If smaller:* ${row.smaller}` : "";
  return `- **\`${row.path}\`** (${facts.join("; ")})\n  ${row.about}${smaller}\n`;
}

function kindText(row: Setting): string {
  if (row.kind === "store") return "`sqlite` \\| `memory` \\| `postgres://…`";
  if (row.kind === "redis") return "`redis://…`";
  if (row.kind === "etcd") return "`http://…`, several with commas";
  if (row.kind === "map") return "map of names and URLs";
  if (row.kind === "address" || row.kind === "addresses")
    return row.kind === "address" ? "host:port" : "list of host:port";
  if (row.secret) return "secret";
  const choices = row.values?.map((value) => `\`${value}\``).join(" \\| ");
  if (choices === undefined) return row.kind;
  return row.kind === "list" ? `list of ${choices}` : choices;
}

function profilesTable(): string {
  const others = PROFILE_NAMES.filter((name) => name !== "lan");
  const paths = SETTINGS.map(({ path }) => path).filter((path) =>
    others.some((name) => PROFILES[name][path]),
  );
  const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const code = (text: string): string => `\`${text}\``;
  return [
    row(["setting", "`lan`", ...others.map(code)]),
    row(["---", "---", ...others.map(() => "---")]),
    ...paths.map((path) => {
      const cells = others.map((name) => PROFILES[name][path]).map((value) => (value ? code(value) : ""));
      return row([code(path), code(String(SETTING_BY_PATH.get(path)!.default)), ...cells]);
    }),
  ].join("\n");
}

function defaultText(row: Setting): string {
  if (row.kind === "redis") return "`redis://…`";
  if (row.kind === "map") return "empty";
  if (Array.isArray(row.default)) return row.default.length === 0 ? "empty" : row.default.join(", ");
  return `\`${String(row.default)}\``;
}

if (import.meta.main)
  writeFileSync(new URL("../docs/configuration.md", import.meta.url), configurationPage());
