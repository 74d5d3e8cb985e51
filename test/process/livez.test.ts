/** A handler that never gives the event loop back: nothing is answered, which is what a liveness probe is for. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";
import { eventually } from "../support/wait.ts";

it("a blocked event loop leaves /livez unanswered, and it answers again when it turns again", async (t) => {
  const node = await NodeProcess.start(t, { data: await dataDirectory(t) });
  const alive = async (): Promise<number | null> => {
    try {
      const answer = await fetch(`${node.url}/livez`, { signal: AbortSignal.timeout(1_000) });
      await answer.body?.cancel();
      return answer.status;
    } catch {
      return null;
    }
  };
  await eventually("an answer", async () => ((await alive()) === 200 ? true : null));
  const answer = await fetch(`${node.url}/workz`);
  assert.equal(((await answer.json()) as { code: string }).code, "working");
  // The handler may block the loop before the submit is answered.
  const submitted = node.client.submit({ task: "block", payload: { ms: 3_000 } });
  await eventually("silence", async () => ((await alive()) === null ? true : null));
  await submitted;
  await eventually("an answer", async () => ((await alive()) === 200 ? true : null), 20_000);
});
