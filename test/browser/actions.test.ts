import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { suiteScope } from "../support/node-cleanup.ts";
import { eventually } from "../support/wait.ts";
import type { NodeProcess } from "../support/process-node.ts";
import { assertQuiet, noBrowser, TestBrowser } from "./chromium.ts";
import { settled, startNode } from "./world.ts";

describe("what one does with the dashboard", { skip: noBrowser() ?? false }, () => {
  const scope = suiteScope();
  let node: NodeProcess;
  let browser: TestBrowser;

  before(async () => {
    const settings = { AGENTS__LEASE: "1500ms" };
    [node, browser] = await Promise.all([startNode(scope, settings), TestBrowser.start(scope)]);
  });

  it("a job is submitted by a form made from its schema, and what is refused stands at the field", async () => {
    // The refusal is an answer with status 400, of which the browser tells too.
    const watched = await browser.open(`${node.url}/#/jobs/new`, { expected: /status of 400/ });
    const { page } = watched;
    await settled(page);
    await page.getByRole("button", { name: "greet" }).click();
    const name = page.getByLabel("name");
    await name.fill("A");
    assert.equal(await page.getByLabel("times").inputValue(), "1", "the default is filled in");
    await page.getByRole("button", { name: "Submit the job" }).click();
    await page.locator(".field.wrong", { has: name }).getByText("must have two letters").waitFor();
    await name.fill("Ada");
    await page.getByLabel("times").fill("3");
    await page.getByLabel("shout").check();
    await page.getByLabel("tags", { exact: true }).fill('["a"');
    await page.getByRole("button", { name: "Submit the job" }).click();
    await page.getByText("not JSON yet").waitFor();
    await page.getByLabel("tags", { exact: true }).fill('["a", "b"]');
    await page.getByText("Options", { exact: true }).click();
    await page.getByLabel("Tags", { exact: true }).fill("vip\nmonthly");
    await page.getByRole("button", { name: "Submit the job" }).click();
    await page.getByRole("heading", { name: "greet", level: 1 }).waitFor();
    await page.locator("main .job-state .status", { hasText: "completed" }).waitFor();
    await page.getByText("HELLO, ADA!").waitFor();
    await page.getByLabel("Log lines").getByText("greeting 3").waitFor();
    const id = decodeURIComponent(new URL(page.url()).hash.slice("#/jobs/".length));
    const job = await node.client.job(id);
    assert.deepEqual(job.tags, ["vip", "monthly"]);
    await page.getByRole("link", { name: "monthly", exact: true }).waitFor();
    assert.deepEqual(job.payload, {
      name: "Ada",
      times: 3,
      shout: true,
      tags: ["a", "b"],
    });
    await page.getByRole("link", { name: "Clone…" }).click();
    await page.getByRole("heading", { name: "Clone a job" }).waitFor();
    await page.waitForFunction(() =>
      [...document.querySelectorAll("textarea, input")].some(
        (field) => (field as HTMLInputElement).value === "Ada",
      ),
    );
    await page.getByRole("button", { name: "Submit the job" }).click();
    await page.waitForFunction(
      (old) => /#\/jobs\/solo-/.test(location.hash) && !location.hash.includes(old),
      id,
    );
    assertQuiet(watched);
  });

  it("a log is watched as it is written, searched, and left alone when one scrolls", async () => {
    const { job_id } = await node.client.submit({
      task: "narrate",
      payload: { lines: 1_500, perSecond: 500 },
    });
    const watched = await browser.open(`${node.url}/#/jobs/${job_id}`);
    const { page } = watched;
    const log = page.getByLabel("Log lines");
    await log
      .getByText(/line \d+ of 1500/)
      .first()
      .waitFor();
    await page.getByText("1,500 lines", { exact: true }).waitFor();
    await log.getByText("line 1500 of 1500").waitFor();
    assert.ok((await page.locator(".log-row").count()) < 60, "only the rows in view are in the page");
    await page.getByPlaceholder("search the log").fill("line 77 of");
    await page.getByText("1 of 1,500 lines").waitFor();
    assert.equal(await log.locator("mark").textContent(), "line 77 of");
    await page.getByPlaceholder("search the log").fill("");
    await log.hover();
    await page.mouse.wheel(0, -100_000);
    await log.getByText("line 1 of 1500").waitFor();
    assert.equal(await page.getByLabel("follow").isChecked(), false);
    await page.locator(".job-state .status", { hasText: "completed" }).waitFor();
    assertQuiet(watched);
  });

  it("a job that waits says why, and one that runs is cancelled", async () => {
    const { job_id: waiting } = await node.client.submit({ task: "unheard-of", allow_unknown: true });
    const running = await node.begins({ task: "hold" });
    const watched = await browser.open(`${node.url}/#/jobs/${waiting}`);
    const { page } = watched;
    await page
      .getByTestId("waiting-for")
      .getByText(/no node .*knows task unheard-of/)
      .waitFor();
    await page.goto(`${node.url}/#/jobs/${running}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("asked to stop").waitFor();
    await dialog.getByRole("button", { name: "Cancel", exact: true }).click();
    assert.equal(
      (await node.client.job(running)).cancel_requested,
      false,
      "who changes their mind changes nothing",
    );
    await page.getByRole("button", { name: "Cancel…" }).click();
    await dialog.getByRole("button", { name: "Cancel the job" }).click();
    await page.locator(".job-state .status", { hasText: "cancelled" }).waitFor();
    assert.equal((await node.client.job(running)).status, "cancelled");
    await page.getByRole("button", { name: "Delete…" }).waitFor();
    assertQuiet(watched);
  });

  it("failures are grouped by what they say, and all of a group are retried after they were counted", async () => {
    const fail = (message: string) => ({ task: "stumble", payload: { message }, max_attempts: 1 });
    await node.client.submitMany([
      ...Array.from({ length: 7 }, (_, n) => fail(`cannot reach host ${n}`)),
      ...Array.from({ length: 2 }, (_, n) => fail(`order ${n} is unknown`)),
    ]);
    await failedJobs(9);
    const watched = await browser.open(`${node.url}/#/failures`);
    const { page } = watched;
    const group = page.getByRole("row", { name: /cannot reach host/ });
    await group.getByRole("link", { name: "7", exact: true }).waitFor();
    const before = await attempts();
    await group.getByRole("button", { name: /^Retry 7 jobs/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Retry 7 jobs" }).click();
    await dialog.getByText("7 jobs retried.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await eventually("seven more attempts", async () => (await attempts()) === before + 7 || null);
    await page.goto(`${node.url}/#/jobs?status=failed`);
    await failedJobs(9);
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 9);
    await page.getByLabel("Select all jobs on this page").check();
    await page.getByRole("button", { name: "Retry…" }).click();
    await dialog.getByRole("button", { name: "Retry 9 jobs" }).click();
    await dialog.getByText("9 jobs retried.").waitFor();
    assertQuiet(watched);
  });

  it("all that match are cancelled, also those on other pages", async () => {
    await node.client.pauseQueue("crowd", { allowUnknown: true });
    await node.client.submitMany(Array.from({ length: 130 }, () => ({ task: "tick", queue: "crowd" })));
    const watched = await browser.open(`${node.url}/#/jobs?queue=crowd&status=queued`);
    const { page } = watched;
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 50);
    await page.getByLabel("Select all jobs on this page").check();
    await page.getByRole("button", { name: "Select all that match" }).click();
    await page.getByRole("button", { name: "Cancel…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Cancel 130 jobs" }).click();
    await dialog.getByText("130 jobs cancelled.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByText("There are no queued jobs in queue crowd").waitFor();
    assertQuiet(watched);
  });

  it("a queue is paused and resumed", async () => {
    await node.client.submit({ task: "tick", queue: "mail" });
    const watched = await browser.open(`${node.url}/#/queues`);
    const { page } = watched;
    await page.getByRole("button", { name: "Pause mail" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause the queue" }).click();
    await page.getByRole("row", { name: /^mail/ }).locator(".status", { hasText: "paused" }).waitFor();
    const { job_id } = await node.client.submit({ task: "tick", queue: "mail" });
    await page.goto(`${node.url}/#/jobs/${job_id}`);
    await page.getByTestId("waiting-for").getByText("queue mail is paused").waitFor();
    await page.goto(`${node.url}/#/queues`);
    await page.getByRole("button", { name: "Resume mail" }).click();
    await page.getByRole("button", { name: "Pause mail" }).waitFor();
    await node.jobWhen(job_id, ({ status }) => status === "completed");
    assertQuiet(watched);
  });

  it("a schedule is run now, and paused", async () => {
    await node.client.putSchedule({
      name: "nightly",
      task: "tick",
      cron: "30 2 * * *",
      zone: "Europe/Berlin",
    });
    const watched = await browser.open(`${node.url}/#/schedules`);
    const { page } = watched;
    const row = page.getByRole("row", { name: /^nightly/ });
    await row
      .getByText(/02:30|2:30/)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Run now: nightly" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run it now" }).click();
    await page.getByText(/Submitted solo-/).waitFor();
    await page.getByRole("button", { name: "Pause nightly" }).click();
    await row.locator(".status", { hasText: "paused" }).waitFor();
    assert.equal((await node.client.schedule("nightly")).paused, true);
    await row.getByRole("link", { name: "nightly" }).click();
    await page.getByRole("heading", { name: "Next times" }).waitFor();
    await page.locator("section", { hasText: "Next times" }).locator("li").nth(9).waitFor();
    assertQuiet(watched);
  });

  it("a schedule is made, changed and removed by a form that says what its timing means", async () => {
    const watched = await browser.open(`${node.url}/#/schedules`, { expected: /status of 400/ });
    const { page } = watched;
    await page.getByRole("link", { name: "New schedule" }).click();
    const meaning = page.locator(".meaning");
    await page.getByLabel("Cron expression").fill("15 7 * * MON");
    await page.getByLabel("Time zone").fill("UTC");
    await meaning.getByText("At 07:15, only on Monday, UTC").waitFor();
    await meaning.locator("li").nth(4).waitFor();
    assert.equal(await meaning.locator("li").count(), 5);
    await page.getByLabel("Cron expression").fill("15 25 * * MON");
    await page.locator(".field.wrong", { hasText: "Cron expression" }).waitFor();
    await page.getByLabel("Cron expression").fill("15 7 * * MON");
    await page.locator(".field.wrong").waitFor({ state: "detached" });

    await page.getByLabel("Name (required)", { exact: true }).fill("weekly");
    await page.getByRole("button", { name: "greet" }).click();
    await page.getByLabel("name (required)", { exact: true }).fill("");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.locator(".field.wrong", { hasText: "name" }).waitFor();
    await page.getByLabel("name (required)", { exact: true }).fill("Ada");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByRole("heading", { name: "weekly", exact: true }).waitFor();
    const made = await node.client.schedule("weekly");
    assert.deepEqual([made.cron, made.zone, made.task], ["15 7 * * MON", "UTC", "greet"]);
    assert.equal((made.payload as { name: string }).name, "Ada");

    await page.getByRole("link", { name: "Change…" }).click();
    await page.getByLabel("At an interval").check();
    await page.getByLabel("Every").fill("90");
    await page.getByLabel("Unit").selectOption("minutes");
    await meaning.getByText("Every 1 hour 30 minutes").waitFor();
    await page.getByLabel("If one still runs").selectOption("skip");
    await page.getByRole("button", { name: "Save the changes" }).click();
    // The form says these words as well: what counts is that it has gone.
    await page.getByRole("link", { name: "Change…" }).waitFor();
    await page.getByText("every 1 hour 30 minutes").waitFor();
    const changed = await node.client.schedule("weekly");
    assert.deepEqual([changed.every_ms, changed.cron, changed.overlap], [5_400_000, null, "skip"]);
    assert.deepEqual(changed.payload, made.payload);

    await page.goto(`${node.url}/#/schedules?form=new`);
    await page.getByLabel("Name (required)", { exact: true }).fill("weekly");
    await page.getByRole("button", { name: "hold" }).click();
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByText("There is a schedule of that name already").waitFor();
    assert.equal((await node.client.schedule("weekly")).task, "greet", "one that is there is not replaced");

    await page.goto(`${node.url}/#/schedules/weekly`);
    await page.getByRole("button", { name: "Remove…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove the schedule" }).click();
    await page.getByText("weekly is removed.").waitFor();
    await page.getByRole("row", { name: /^weekly/ }).waitFor({ state: "detached" });
    assertQuiet(watched);
  });

  it("a result that came too late stands among the refused writes, and its agent among the processes", async () => {
    const { client } = node;
    const { job_id: job } = await client.submit({ task: "agent-work", allow_unknown: true });
    const agent = { agent: "late", capabilities: ["agent-work"] };
    const lease = (await client.controller.lease({ ...agent, max_tasks: 1, timeout_ms: 10_000 }))!;
    await eventually("the job to be taken back", async () => {
      return (await client.job(job)).status === "queued";
    });
    const { leader_epoch, lease_id, tasks } = lease;
    const late = { job_id: job, job_epoch: tasks.at(0)!.job_epoch, leader_epoch, lease_id, agent: "late" };
    const answers = await client.controller
      .results([{ ...late, status: "succeeded", result: 1 }])
      .catch(() => [{ accepted: false }]);
    assert.equal(answers.at(0)?.accepted, false);

    const watched = await browser.open(`${node.url}/#/leadership`);
    const { page } = watched;
    const row = page.getByRole("region", { name: "Refused stale writes" }).getByRole("row").nth(1);
    await row.waitFor();
    const cells = await row.locator("td").allTextContents();
    assert.equal(cells[1], "solo");
    assert.equal(Number(cells[3]), late.job_epoch);
    assert.ok(Number(cells[4]) > late.job_epoch, "the epoch that counts");
    await row.getByRole("link").last().click();
    await page.locator("h1", { hasText: "agent-work" }).waitFor();
    await page.goto(`${node.url}/#/processes`);
    const shown = page.getByRole("region", { name: "Agents" }).getByRole("row", { name: /^late/ });
    await shown.getByText("agent-work").waitFor();
    assertQuiet(watched);
  });

  it("what was done is in the audit", async () => {
    const watched = await browser.open(`${node.url}/#/audit`);
    const { page } = watched;
    await page
      .getByRole("row", { name: /pause queue/ })
      .first()
      .waitFor();
    await page
      .getByRole("row", { name: /trigger schedule/ })
      .first()
      .waitFor();
    assertQuiet(watched);
  });

  async function failedJobs(count: number): Promise<void> {
    await eventually(`${count} failed jobs`, async () => {
      const { job_count } = await node.client.jobs({ status: "failed" });
      return job_count === count;
    });
  }

  async function attempts(): Promise<number> {
    const { jobs } = await node.client.jobs({ task: "stumble", limit: 100 });
    return jobs.reduce((sum, job) => sum + job.attempts, 0);
  }
});
