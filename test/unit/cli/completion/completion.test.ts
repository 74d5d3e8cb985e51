/** The scripts in real shells: bash is everywhere, zsh and fish are tried where they are installed. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fakeNode } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";

const directory = mkdtempSync(join(tmpdir(), "baton-completion-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function shell(name: string, args: readonly string[]): string {
  const { stdout, stderr, status, error } = spawnSync(name, args, {
    encoding: "utf8",
    cwd: directory,
    timeout: 20_000,
  });
  assert.equal(status, 0, `${String(error)} ${stderr}`);
  assert.equal(stderr, "");
  return stdout;
}

function missing(name: string): string | false {
  return spawnSync(name, ["--version"]).status === 0 ? false : `there is no ${name} here`;
}

before(async () => {
  for (const name of ["bash", "zsh", "fish"]) {
    const { code, out, err } = await runCli(["completion", name]);
    assert.deepEqual([code, err], [0, ""]);
    writeFileSync(join(directory, `baton.${name}`), out);
  }
  writeFileSync(join(directory, "some-file.yaml"), "");
});

/** What is typed so far, the word under the cursor last; and what is offered for it. */
const CASES: readonly (readonly [words: readonly string[], offered: RegExp])[] = [
  [["j"], /^jobs$/],
  [["jobs", ""], /^list show logs wait retry cancel delete failures$/],
  [["jobs", "re"], /^retry$/],
  [["leaders", "--hi"], /^--history$/],
  [["jobs", "list", "--st"], /^--status$/],
  [["jobs", "--st"], /^--status$/],
  [["jobs", "list", "--status", "f"], /^failed$/],
  [
    ["jobs", "list", "--limit", "5", "--status", ""],
    /^scheduled queued processing completed failed cancelled$/,
  ],
  [["nodes", "-o", ""], /^table json yaml$/],
  [["start", "--log-format", "p"], /^pretty$/],
  [["start", "--config", "some"], /^some-file\.yaml$/],
  [["queues", "pause", "--url", "http", ":", "//x", "q"], /^queues-1 queues-2$/],
  [["queues", "pau"], /^pause$/],
  [["node", "drain", ""], /^nodes-1 nodes-2$/],
  [["queues", "pause", "x"], /^$/],
  [["completion", ""], /^bash zsh fish$/],
  [["nonsense", ""], /^$/],
];

describe("completion in bash", { skip: missing("bash") }, () => {
  it("offers commands, options, their values, files and names", () => {
    const quoted = (word: string): string => `'${word}'`;
    const script = [
      "source ./baton.bash",
      // Stands for the program, which would ask a node.
      'baton() { echo "$3-1 $3-2"; }',
      'try() { COMP_WORDS=(baton "$@"); COMP_CWORD=$#; _baton; echo "${COMPREPLY[*]}"; }',
      ...CASES.map(([words]) => `try ${words.map(quoted).join(" ")}`),
    ];
    const lines = shell("bash", ["--norc", "-c", script.join("\n")]).split("\n");
    CASES.forEach(([words, offered], at) => assert.match(lines[at]!, offered, words.join(" ")));
  });

  it("understands an option and its value written as one", () => {
    const script =
      "source ./baton.bash; COMP_WORDS=(baton jobs list --status = fa); COMP_CWORD=5; _baton; echo ${COMPREPLY[*]}";
    assert.equal(shell("bash", ["--norc", "-c", script]), "failed\n");
  });

  it("is registered for baton", () => {
    assert.equal(
      shell("bash", ["--norc", "-c", "source ./baton.bash; complete -p baton"]),
      "complete -F _baton baton\n",
    );
  });
});

describe("completion in fish", { skip: missing("fish") }, () => {
  it("offers commands, options and their values", () => {
    const offered = (line: string): string[] =>
      shell("fish", ["--no-config", "-c", `source ./baton.fish; complete -C '${line}'`])
        .trimEnd()
        .split("\n")
        .map((each) => each.split("\t")[0]!);
    assert.deepEqual(offered("baton jobs re"), ["retry"]);
    assert.deepEqual(offered("baton jobs list --status f"), ["failed"]);
    assert.deepEqual(offered("baton queues pau"), ["pause"]);
  });
});

describe("completion in zsh", { skip: missing("zsh") }, () => {
  it("is a script that zsh can read, and is registered for baton", () => {
    const script = "autoload -U compinit; compinit -u -d ./dump; source ./baton.zsh; echo $_comps[baton]";
    assert.equal(shell("zsh", ["-f", "-c", script]), "_baton\n");
  });
});

describe("names for completion", () => {
  it("are those that the cluster knows", async () => {
    await using node = await fakeNode({
      "GET /cluster/nodes": { nodes: [{ name: "a" }, { name: "b" }] },
      "GET /queues": { queues: [{ name: "mail" }] },
    });
    const values = async (what: string): Promise<string> =>
      (await runCli(["completion", "values", what, "--url", node.url])).out;
    assert.equal(await values("nodes"), "a\nb\n");
    assert.equal(await values("queues"), "mail\n");
  });

  it("are none, without a word, when no node answers", async () => {
    const { code, out, err } = await runCli(["completion", "values", "nodes", "--url", "http://127.0.0.1:1"]);
    assert.deepEqual([code, out, err], [0, "", ""]);
  });
});
