import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { auditTrail } from "../../../src/access/audit-trail.ts";
import type { JournalService } from "../../../src/observe/journal/journal.ts";
import type { Principal } from "../../../src/core/access/permissions.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const CI: Principal = { kind: "token", name: "ci", permission: "submit", id: "1" };

function trail() {
  const clock = new ManualClock();
  const notes: Parameters<JournalService["note"]>[0][] = [];
  return { clock, notes, audit: auditTrail({ clock }, { note: (note) => notes.push(note) }) };
}

describe("the audit", () => {
  it("tells of a change who made it, of what, and how it ended", () => {
    const { audit, notes } = trail();
    audit.changed({
      operation: "pause_queue",
      principal: CI,
      params: { name: "mail" },
      status: 200,
      address: "203.0.113.9",
      requestId: "r-1",
    });
    audit.changed({
      operation: "submit_jobs",
      principal: null,
      params: {},
      status: 503,
      address: "2001:db8::9",
      requestId: "r-2",
      servedBy: "node-b",
    });
    assert.deepEqual(notes, [
      {
        kind: "audit",
        actor: "token:ci",
        subject: "mail",
        detail: {
          operation: "pause_queue",
          params: { name: "mail" },
          status: 200,
          address: "203.0.113.9",
          request_id: "r-1",
        },
      },
      {
        kind: "audit",
        actor: null,
        subject: "submit_jobs",
        detail: {
          operation: "submit_jobs",
          params: {},
          status: 503,
          address: "2001:db8::9",
          request_id: "r-2",
          served_by: "node-b",
        },
      },
    ]);
  });

  it("counts what comes by the thousand, for each caller and minute", async () => {
    const { audit, notes, clock } = trail();
    const other: Principal = { ...CI, name: "other" };
    for (let n = 0; n < 1_000; n++)
      audit.counted({ operation: "v1_lease", principal: CI, status: n % 10 === 0 ? 409 : 200 });
    audit.counted({ operation: "v1_lease", principal: other, status: 200 });
    audit.counted({ operation: "submit_jobs", principal: CI, status: 200 });
    assert.equal(notes.length, 0);
    await clock.advance(60_000);
    assert.deepEqual(
      notes.map(({ actor, subject, detail }) => [
        actor,
        subject,
        detail!["count"],
        detail!["refused"],
        detail!["seconds"],
      ]),
      [
        ["token:ci", "v1_lease", 1_000, 100, 60],
        ["token:other", "v1_lease", 1, 0, 60],
        ["token:ci", "submit_jobs", 1, 0, 60],
      ],
    );
    await clock.advance(600_000);
    assert.equal(notes.length, 3, "nothing is told of a minute without calls");
    audit.counted({ operation: "v1_lease", principal: CI, status: 200 });
    await clock.advance(60_000);
    assert.equal(notes.at(-1)!.detail!["count"], 1);
  });

  it("counts refusals for each address, and flushes when it ends", () => {
    const { audit, notes } = trail();
    for (let n = 0; n < 5; n++) audit.refused("10.0.0.9", "UNAUTHENTICATED");
    audit.refused("10.0.0.9", "FORBIDDEN", "token:ci");
    audit.flush();
    assert.deepEqual(
      notes.map(({ actor, subject, detail }) => [actor, subject, detail!["code"], detail!["count"]]),
      [
        [null, "10.0.0.9", "UNAUTHENTICATED", 5],
        ["token:ci", "10.0.0.9", "FORBIDDEN", 1],
      ],
    );
    audit.flush();
    assert.equal(notes.length, 2);
  });

  it("is not drowned by somebody who calls from everywhere", () => {
    const { audit, notes } = trail();
    for (let n = 0; n < 50_000; n++)
      audit.refused(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, "UNAUTHENTICATED");
    audit.flush();
    assert.equal(notes.length, 1_001);
    const others = notes.find(({ subject }) => subject === "others")!;
    assert.equal(others.detail!["count"], 49_000);
  });
});
