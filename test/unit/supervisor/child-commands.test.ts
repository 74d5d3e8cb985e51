import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loadSettings } from "../../../src/config/load-settings.ts";
import {
  agentCommand,
  controllerCommand,
  controllerRoles,
  noAgentBecause,
  type ChildCommandOptions,
} from "../../../src/supervisor/child-commands.ts";

function commands(environment: Record<string, string> = {}): ChildCommandOptions {
  const { settings } = loadSettings({ cwd: "/", environment: { BATON_NAME: "ada", ...environment } });
  return {
    settings,
    runtime: ["node", "baton.mjs"],
    flags: ["--port", "0"],
    environment: { PATH: "/bin" },
    pid: 7,
  };
}

describe("the command lines of the children", () => {
  it("the controller is a node with the same flags that runs no jobs, and knows whose child it is", () => {
    const { file, args, environment, channel } = controllerCommand(commands());
    assert.deepEqual(
      [file, ...args],
      ["node", "baton.mjs", "start", "--port", "0", "--roles", "gateway,scheduler"],
    );
    assert.deepEqual(environment, { PATH: "/bin", BATON_LAUNCHER: "7", BATON_SUPERVISOR: "7" });
    assert.equal(channel, true);
  });

  it("the agent gets a token of its own, and none of the secrets of nodes", () => {
    const secrets = [
      "BATON_ACCESS__TOKEN",
      "BATON_ACCESS__TOKEN_FILE",
      "BATON_SECRET",
      "BATON_MANAGER__PASS",
    ];
    const given = Object.fromEntries([...secrets, "BATON_STORE", "MINE"].map((name) => [name, "x"]));
    for (const own of [{}, { BATON_CONTROLLER__AGENT_COMMAND: "python3,agent.py" }] as Record<
      string,
      string
    >[]) {
      const options = { ...commands(own), environment: given, agentToken: "baton_agents" };
      const { environment } = agentCommand(options, []);
      assert.equal(environment["BATON_TOKEN"], "baton_agents");
      assert.equal(environment["MINE"], "x");
      const found = secrets.filter((name) => name in environment);
      assert.deepEqual(found, []);
      const controller = controllerCommand(options);
      assert.equal(controller.environment["BATON_AGENT_TOKEN"], "baton_agents");
      assert.equal(controller.environment["BATON_SECRET"], "x");
    }
  });

  it("a node that only runs jobs has no use for a node-controller", () => {
    assert.deepEqual(controllerRoles(["worker", "scheduler"]), ["scheduler"]);
    assert.throws(() => controllerRoles(["worker", "function"]), {
      code: "BAD_CONFIG",
      message: /^roles must/,
    });
  });

  it("the agent is named for its node and knows all the nodes, tasks and queues", () => {
    const options = commands({
      BATON_TASKS: "/t,/u",
      BATON_WORKER__QUEUES: "a,b",
      BATON_WORKER__CONCURRENCY: "4",
    });
    const { args, channel } = agentCommand(options, ["http://a", "http://b"]);
    const given = "--name=ada-worker --concurrency=4 --log-level=info --log-format=auto";
    const expected = `baton.mjs agent --url=http://a,http://b ${given} --tasks /t --tasks /u --queues a,b`;
    assert.deepEqual(args, expected.split(" "));
    assert.equal(channel, true);
  });

  it("another program may be the agent, told the same and nothing of ours", () => {
    const options = commands({ BATON_CONTROLLER__AGENT_COMMAND: "python3,agent.py,--url={urls},{name}" });
    const { file, args, environment, channel } = agentCommand(options, ["http://a", "http://b"]);
    assert.deepEqual([file, ...args], ["python3", "agent.py", "--url=http://a,http://b", "ada-worker"]);
    assert.deepEqual([environment, channel], [{ PATH: "/bin" }, false]);
    assert.equal(noAgentBecause(options.settings), null);
  });

  it("there is none without tasks, or when nobody wants it", () => {
    assert.match(noAgentBecause(commands().settings)!, /no tasks/);
    assert.equal(noAgentBecause(commands({ BATON_TASKS: "/t" }).settings), null);
    const idle = { BATON_TASKS: "/t", BATON_WORKER__CONCURRENCY: "0" };
    assert.match(noAgentBecause(commands(idle).settings)!, /concurrency/);
    const unwanted = { BATON_TASKS: "/t", BATON_CONTROLLER__MOONLIGHT: "false" };
    assert.match(noAgentBecause(commands(unwanted).settings)!, /moonlight/);
  });
});
