import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sparkline } from "../../../../src/cli/top/header-view.ts";
import { painted, textOf } from "../../../../src/cli/terminal/output.ts";
import { FIRST, type Model, PANES, type TopEvent } from "../../../../src/cli/top/top-model.ts";
import { heights, pageOf, screen } from "../../../../src/cli/top/screen.ts";
import { columnsOf } from "../../../../src/cli/terminal/plain-text.ts";
import { ago, jobRow, nodeRow, NOW, overview, sample } from "./sample.ts";

/** As it is seen, with > before the row that is selected. */
function seen(model: Model, width: number, height: number): string[] {
  return screen(model, { width, height, now: NOW }).map(
    (line) =>
      (line.length === 1 && line[0]!.style === "inverse" ? ">" : "") +
      painted(line, width, (_, text) => text)
        .replace("\u001b[K", "")
        .trimEnd(),
  );
}
const key = (char: string): TopEvent => ({ kind: "key", key: { char }, page: 5 });

describe("the screen of baton top", () => {
  it("shows all of a small cluster on 80x24", () => {
    const time = new Date(NOW).toTimeString().slice(0, 8);
    const clock = (ms: number): string => new Date(NOW - ms).toTimeString().slice(0, 8);
    assert.deepEqual(seen(sample(), 80, 24), [
      ` demo   node-a leads, epoch 7, for 12m  2/3 nodes                       ${time}`,
      "in 120/s   out 118/s   failing 0.2/s   wait p95 21ms   run p95 310ms",
      "running 12/30  waiting 1204 (oldest 3.4s)  scheduled 4  done 48.1k  failed 3",
      "! node-c has been silent for 12 s and is taken to be dead  → start it again; wh…",
      "NODES              STATUS    ROLE      JOBS   CPU   MEM     LAG  REACHES    SEEN",
      ">node-a             active    leader       3   26%   50%     1ms        -   400ms",
      "node-b             active    standby      3   26%   50%     1ms        -   400ms",
      "node-c             dead      -            3   26%   50%     1ms        -     12s",
      "QUEUES        STATE   WAITING  OLDEST  RUNNING       IN      OUT  FAILED    DONE",
      "default       open       1204    3.4s       12    120/s    118/s       3   48.1k",
      "mail          paused        0       -       12    120/s    118/s       0   48.1k",
      "RUNNING               TASK                 WORKER          FOR  PROGRES 1-7 of 9",
      "node-a-0…00000000001  resize               node-a/1       1.3s  █░░░░░░░░░ 10%",
      "node-a-0…00000000002  identify-language    node-a/1       2.6s  ██░░░░░░░░ 20%",
      "node-a-0…00000000003  resize               node-a/1       3.9s  ███░░░░░░░ 30%",
      "node-a-0…00000000004  identify-language    node-a/1       5.2s  ████░░░░░░ 40%",
      "node-a-0…00000000005  resize               node-a/1       6.5s  █████░░░░░ 50%",
      "node-a-0…00000000006  identify-language    node-a/1       7.8s  ██████░░░░ 60%",
      "node-a-0…00000000007  resize               node-a/1       9.1s  ███████░░░ 70%",
      "EVENTS",
      `${clock(11_000)}  node-a leads under epoch 7`,
      `${clock(12_000)}  node-c is dead`,
      `${clock(15_000)}  a stale write of node-c refused: a fire under epoch 6, current is 7`,
      "q quit  tab next  ↑↓ select  enter more  d drain  r resume  ? help",
    ]);
  });

  it("has more columns and whole ids where there is room", () => {
    const lines = seen(sample(), 120, 40);
    assert.match(lines[4]!, /^NODES +STATUS +ROLE +JOBS +CPU +MEM +LAG +REACHES +SEEN +VERSION +URL$/);
    assert.ok(lines.some((line) => line.startsWith(`${jobRow(9).job_id} `)));
  });

  it("is never wider or higher than the terminal, whatever its size and what there is", () => {
    const crowd = sample(
      {
        kind: "overview",
        overview: overview({ alerts: Array.from({ length: 9 }, () => overview().alerts[0]!) }),
      },
      {
        kind: "lists",
        lists: {
          nodes: Array.from({ length: 40 }, (_, n) => nodeRow(`${"名前".repeat(n)}-${n}`)),
          jobs: Array.from({ length: 150 }, (_, n) => jobRow(n, { task: `t\u001b[2J${n}` })),
        },
      },
    );
    for (const model of [
      crowd,
      sample(),
      sample(key("?")),
      sample(key("a")),
      sample({ kind: "key", key: "enter", page: 1 }),
      FIRST,
    ]) {
      for (let width = 20; width <= 200; width += 45) {
        for (let height = 5; height <= 60; height += 18) {
          const lines = screen(model, { width, height, now: NOW });
          assert.equal(lines.length, height, `${width}x${height}`);
          for (const line of lines) {
            const text = painted(line, width, (_, each) => each).replace("\u001b[K", "");
            assert.ok(columnsOf(text) <= width, `${width}x${height}: ${text}`);
            // oxlint-disable-next-line no-control-regex
            assert.doesNotMatch(text, /[\u0000-\u001f]/);
          }
        }
      }
    }
  });

  it("keeps the selected row in sight", () => {
    const jobs = Array.from({ length: 100 }, (_, n) => jobRow(n));
    const model = sample({ kind: "lists", lists: { jobs } }, key("3"), { kind: "key", key: "end", page: 1 });
    const selected = seen(model, 80, 24).filter((line) => line.startsWith(">"));
    assert.equal(selected.length, 1);
    assert.match(selected[0]!, /^>node-a-0…00000000099/);
    assert.ok(pageOf(model, { width: 80, height: 24, now: NOW }) >= 6, "the list in use has the most room");
  });

  it("asks before it does something, and tells what came of it", () => {
    const asked = seen(sample(key("d")), 80, 24).at(-1)!;
    assert.equal(asked, "Drain node-a? It finishes 3 running jobs and takes no more.  y/n");
    const told = seen(sample({ kind: "done", text: "node-a was asked to drain", bad: false }), 120, 24).at(
      -1,
    )!;
    assert.match(told, /^node-a was asked to drain +q quit/);
  });

  it("says that the node is away and keeps what it knew", () => {
    const lines = seen(sample({ kind: "trouble", reason: "no connection" }), 100, 24);
    assert.match(lines[0]!, /node-a does not answer/);
    assert.ok(lines.some((line) => line.includes("node-b")));
    const never = seen(FIRST, 80, 24);
    assert.match(never[0]!, /connecting …/);
  });

  it("says whose part is missing, and that there is no leader", () => {
    const lost = overview({ partial: true, unreachable: ["node-c"], leader: null });
    const [title] = seen(sample({ kind: "overview", overview: lost }), 100, 24);
    assert.match(title!, /no leader .* without node-c/);
  });

  it("tells everything about a row, with the line to type for its logs", () => {
    const text = seen(sample(key("3"), { kind: "key", key: "enter", page: 1 }), 80, 24).join("\n");
    assert.match(text, new RegExp(`job +${jobRow(1).job_id}`));
    assert.match(text, /logs +baton jobs logs -f node-a/);
    assert.match(
      seen(sample(key("4"), { kind: "key", key: "enter", page: 1 }), 80, 24).join("\n"),
      /kind +term\.started/,
    );
  });

  it("has all alerts in full behind a key", () => {
    const text = seen(sample(key("a")), 80, 24).join("\n");
    assert.match(text, /→ start it again; what it ran runs elsewhere\n {4}for 12s/);
  });

  it("shows long ago as an age, not as a time of another day", () => {
    const [entry] = sample().events;
    const old = { ...entry!, id: "77", at: ago(3 * 86_400_000) };
    const lines = seen(sample({ kind: "journal", entries: [old] }), 80, 40);
    assert.ok(lines.some((line) => line.startsWith("3d ago ")));
  });
});

describe("rows for the lists", () => {
  const views = (...rows: number[]) =>
    PANES.map((pane, at) => ({ pane, rows: Array.from({ length: rows[at]! }, () => []) }));

  it("are what all need where it fits", () => {
    assert.deepEqual(heights(views(3, 2, 5, 1), "nodes", 40), [4, 3, 6, 2]);
  });

  it("are shared where it does not, with the most for the list in use, and never too many", () => {
    for (let room = 4; room < 60; room++) {
      for (const active of PANES) {
        const given = heights(views(50, 50, 50, 50), active, room);
        assert.ok(given.reduce((a, b) => a + b) <= room, `${room}: ${given.join(" ")}`);
        assert.ok(given[PANES.indexOf(active)]! >= Math.max(...given), `${room}: ${given.join(" ")}`);
      }
    }
  });
});

describe("a curve", () => {
  it("is as high as its highest value", () => {
    assert.equal(sparkline([0, 1, 2, 4, 8]), "▁▁▂▄█");
    assert.equal(sparkline([0, 0]), "▁▁");
    assert.equal(sparkline([]), "");
  });

  it("of styled pieces is read as text", () =>
    assert.equal(
      textOf([
        { text: "a", style: "red" },
        { text: "b", style: null },
      ]),
      "ab",
    ));
});
