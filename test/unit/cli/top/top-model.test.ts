import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Key } from "../../../../src/cli/top/tty-session.ts";
import { FIRST, type Model, selectedIndex, step, type Step } from "../../../../src/cli/top/top-model.ts";
import { jobRow, nodeRow, sample } from "./sample.ts";
import { column } from "../../../support/columns.ts";

/** Presses keys: names of keys, or single characters. */
function press(model: Model, ...keys: readonly string[]): Step {
  return keys.reduce<Step>(
    ({ model: before }, name) => {
      const key = (name.length === 1 ? { char: name } : name) as Key;
      return step(before, { kind: "key", key, page: 5 });
    },
    { model, todo: null },
  );
}

describe("the keys of baton top", () => {
  it("quit, suspend and draw anew", () => {
    assert.equal(press(sample(), "q").todo, "quit");
    assert.equal(press(sample(), "interrupt").todo, "quit");
    assert.equal(press(sample(), "?", "q").todo, "quit");
    assert.equal(press(sample(), "suspend").todo, "suspend");
    assert.equal(press(sample(), "redraw").todo, "redraw");
  });

  it("go round the lists", () => {
    const panes = ["nodes", "queues", "jobs", "events", "nodes"];
    panes.forEach((pane, times) => {
      assert.equal(press(sample(), ...Array<string>(times).fill("tab")).model.pane, pane);
    });
    assert.equal(press(sample(), "back-tab").model.pane, "events");
    assert.equal(press(sample(), "left", "left").model.pane, "jobs");
    assert.equal(press(sample(), "3").model.pane, "jobs");
  });

  it("select a row, and not beyond the ends", () => {
    const at = (...keys: string[]): number => selectedIndex(press(sample(), "3", ...keys).model);
    assert.equal(at("down", "down", "up"), 1);
    assert.equal(at("up"), 0);
    assert.equal(at("page-down"), 5);
    assert.equal(at("end"), 8);
    assert.equal(at("end", "down"), 8);
    assert.equal(at("end", "home"), 0);
    assert.equal(at("j", "j", "k"), 1);
  });

  it("keep to the row that was selected when others come and go", () => {
    const { model } = press(sample(), "3", "down", "down");
    const jobs = [jobRow(99), ...model.jobs];
    assert.equal(selectedIndex(step(model, { kind: "lists", lists: { jobs } }).model), 3);
    const gone = model.jobs.filter((_, at) => at !== 2);
    assert.equal(selectedIndex(step(model, { kind: "lists", lists: { jobs: gone } }).model), 0);
  });

  it("do nothing without a yes", () => {
    const asked = press(sample(), "down", "d");
    assert.equal(asked.todo, null);
    assert.deepEqual(asked.model.mode, {
      kind: "confirm",
      question: "Drain node-b? It finishes 3 running jobs and takes no more.",
      action: { do: "drain", node: "node-b" },
    });
    assert.deepEqual(press(asked.model, "y").todo, { do: "drain", node: "node-b" });
    assert.equal(press(asked.model, "y").model.mode.kind, "browse");
    for (const no of ["n", "escape", "enter", "q"]) {
      const { model, todo } = press(asked.model, no);
      assert.deepEqual([todo, model.mode.kind, model.message?.text], [null, "browse", "nothing was changed"]);
    }
    assert.equal(press(asked.model, "x").model.mode.kind, "confirm", "another key is no answer");
  });

  it("steer nodes, queues and jobs, each in its list", () => {
    const done = (...keys: string[]): unknown => press(sample(), ...keys, "y").todo;
    assert.deepEqual(done("r"), { do: "resume", node: "node-a" });
    assert.deepEqual(done("2", "p"), { do: "pause", queue: "default" });
    assert.deepEqual(done("2", "down", "p"), { do: "unpause", queue: "mail" });
    assert.deepEqual(done("3", "c"), { do: "cancel", job: jobRow(1).job_id });
    for (const keys of [
      ["2", "d"],
      ["1", "p"],
      ["1", "c"],
      ["4", "r"],
    ]) {
      const { model } = press(sample(), ...keys);
      assert.match(model.message!.text, /select one first \(\d\)$/);
      assert.equal(press(model, "y").todo, null);
    }
  });

  it("open what tells more, and close it", () => {
    for (const [key, kind] of [
      ["?", "help"],
      ["a", "alerts"],
      ["enter", "detail"],
    ] as const) {
      const { model } = press(sample(), key);
      assert.equal(model.mode.kind, kind);
      assert.equal(press(model, "escape").model.mode.kind, "browse");
    }
    assert.equal(press(FIRST, "enter").model.mode.kind, "browse", "there is no row yet");
  });
});

describe("what baton top hears", () => {
  it("is kept while the node is away, and the trouble ends with the next overview", () => {
    const away = step(sample(), { kind: "trouble", reason: "gone" }).model;
    assert.equal(away.trouble, "gone");
    assert.equal(away.nodes.length, 3);
    assert.equal(step(away, { kind: "overview", overview: away.overview! }).model.trouble, null);
  });

  it("has each event once, newest first", () => {
    const model = sample();
    const [newest] = model.events;
    const again = step(model, {
      kind: "journal",
      entries: [newest!, { ...newest!, id: "9", at: "2027-01-01T00:00:00.000Z" }],
    });
    assert.deepEqual(column(again.model.events, "id"), ["9", "3", "2", "1"]);
  });

  it("replaces only the lists that came", () => {
    const { model } = step(sample(), { kind: "lists", lists: { nodes: [nodeRow("only")] } });
    assert.deepEqual([model.nodes.length, model.queues.length], [1, 2]);
  });
});
