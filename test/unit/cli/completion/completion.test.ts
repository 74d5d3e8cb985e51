/** The scripts in real shells: bash is everywhere, zsh and fish are tried where they are installed. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { fakeNode } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";
import { suiteDirectory } from "../../../support/node-cleanup.ts";

const directory = suiteDirectory();

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

/** What is typed so far, up to the cursor; and what may follow. */
const CASES: readonly (readonly [line: string, offered: RegExp])[] = [
  ["jobs ", /^list show logs wait retry cancel delete failures$/],
  ["leaders --", /(?:^| )--history /],
  ["jobs list --st", /(?:^| )--status /],
  ["jobs --st", /(?:^| )--status /],
  ["jobs list --status f", /^scheduled queued processing completed failed cancelled$/],
  ["jobs list --limit 5 --status ", /^scheduled queued processing completed failed cancelled$/],
  ["jobs list --status=fa", /^scheduled queued processing completed failed cancelled$/],
  ["nodes -o ", /^table json yaml$/],
  ["start --log-format p", /^auto json pretty$/],
  ["start --config some", /^:files$/],
  ["init ", /^:files$/],
  ["queues pause --url http://x q", /^mail pictures$/],
  ["queues pau", /^list pause resume$/],
  ["node drain ", /^a b$/],
  ["jobs list --queue ", /^mail pictures$/],
  ["completion ", /^bash zsh fish$/],
  ["import ", /^bullmq pg-boss$/],
  ["import pg-boss postgres://x --", /(?:^| )--schema .*--dry-run /],
  ["nonsense ", /^$/],
];

describe("what may follow a line", () => {
  it("is a command, an option, a value, a file, or a name that the cluster knows", async () => {
    await using node = await fakeNode({
      "GET /cluster/nodes": { nodes: [{ name: "a" }, { name: "b" }] },
      "GET /queues": { queues: [{ name: "mail" }, { name: "pictures" }] },
    });
    for (const [line, offered] of CASES) {
      const { code, out, err } = await runCli(["completion", "words", "bash", `baton ${line}`], {
        environment: { BATON_URL: node.url },
      });
      assert.deepEqual([code, err], [0, ""]);
      assert.match(out.trimEnd().replaceAll("\n", " "), offered, line);
    }
  });

  it("has descriptions for zsh and fish, which take an option and its value for one word", async () => {
    const { out } = await runCli(["completion", "words", "fish", "baton queues p"]);
    assert.match(out, /^pause\tstart no more jobs of a queue/m);
    const value = await runCli(["completion", "words", "zsh", "baton nodes --output=j"]);
    assert.match(value.out, /^--output=json\t$/m);
  });

  it("is nothing, without a word, when no node answers", async () => {
    const { code, out, err } = await runCli(["completion", "words", "bash", "baton node drain "], {
      environment: { BATON_URL: "http://127.0.0.1:1" },
    });
    assert.deepEqual([code, out, err], [0, "", ""]);
  });
});

describe("completion in bash", { skip: missing("bash") }, () => {
  it("offers the commands, and what the program answers to the line", () => {
    const script = [
      "source ./baton.bash",
      // Stands for the program.
      'baton() { case "$4" in *--config*) echo :files ;; "baton jobs list --status"*) echo failed; echo queued ;; esac; }',
      'try() { COMP_WORDS=(baton "$@"); COMP_CWORD=$#; COMP_LINE="baton $*"; COMP_POINT=${#COMP_LINE}; _baton; echo "${COMPREPLY[*]}"; }',
      "try j",
      "try jobs list --status ''",
      "try jobs list --status f",
      "try jobs list --status = fa",
      "try start --config some",
      "try nonsense ''",
    ];
    const lines = shell("bash", ["--norc", "-c", script.join("\n")]).split("\n");
    assert.deepEqual(lines, ["jobs", "failed queued", "failed", "failed", "some-file.yaml", "", ""]);
  });

  it("is registered for baton", () => {
    assert.equal(
      shell("bash", ["--norc", "-c", "source ./baton.bash; complete -p baton"]),
      "complete -F _baton baton\n",
    );
  });
});

describe("completion in fish", { skip: missing("fish") }, () => {
  it("offers commands, and what the program answers", () => {
    const stub = "function baton; printf 'retry\\tput back\\n'; end";
    const offered = (line: string): string[] =>
      shell("fish", ["--no-config", "-c", `source ./baton.fish; ${stub}; complete -C '${line}'`])
        .trimEnd()
        .split("\n")
        .map((each) => each.split("\t")[0]!);
    assert.deepEqual(offered("baton queu"), ["queues"]);
    assert.deepEqual(offered("baton jobs re"), ["retry"]);
  });
});

describe("completion in zsh", { skip: missing("zsh") }, () => {
  it("is a script that zsh can read, and is registered for baton", () => {
    const script = "autoload -U compinit; compinit -u -d ./dump; source ./baton.zsh; echo $_comps[baton]";
    assert.equal(shell("zsh", ["-f", "-c", script]), "_baton\n");
  });
});
