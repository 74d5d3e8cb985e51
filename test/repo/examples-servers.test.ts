/** The examples of other servers, as somebody runs them. Those of Next.js are called as it calls them, without it. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { nodeHere } from "../support/node-here.ts";
import { script } from "../support/process.ts";
import { eventually } from "../support/wait.ts";

const examples = fileURLToPath(new URL("../../examples", import.meta.url));

function greeted(url: string, body: unknown): Promise<Response> {
  return fetch(`${url}/greetings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

for (const { name, environment, authorization } of [
  { name: "fastify", environment: { ADMIN_TOKEN: "secret" }, authorization: "Bearer secret" },
  { name: "express", environment: { ADMIN_PASSWORD: "secret" }, authorization: "Basic YWRtaW46c2VjcmV0" },
] as const) {
  describe(`examples/${name}`, () => {
    it("runs jobs for its callers, and shows the dashboard to those who may see it", async () => {
      const file = join(examples, name, "index.ts");
      await using program = script(file, [], { environment: { ...environment, PORT: "0" } });
      const [, url] = await program.told(/listening on (\S+)/);
      const answer = await greeted(url!, { name: "Ada" });
      assert.deepEqual([answer.status, await answer.json()], [201, { greeting: "Hello Ada" }]);
      const refused = await greeted(url!, { name: 7 });
      assert.equal(refused.status, 400, "the status of the error");
      for (const path of ["jobs/", "jobs/jobs"]) {
        assert.equal((await fetch(`${url}/${path}`)).status, 401, path);
        const wrong = { headers: { authorization: `${authorization}x` } };
        assert.equal((await fetch(`${url}/${path}`, wrong)).status, 401, path);
      }
      const page = await fetch(`${url}/jobs`, { headers: { authorization } });
      assert.deepEqual([page.status, page.url], [200, `${url}/jobs/`]);
      const listed = await fetch(`${url}/jobs/admin/jobs`, { headers: { authorization } });
      const { jobs } = (await listed.json()) as { jobs: { task: string; status: string }[] };
      assert.deepEqual(
        jobs.map(({ task, status }) => [task, status]),
        [["greet", "completed"]],
      );
      // Somebody looks at it while it stops.
      const events = await fetch(`${url}/jobs/cluster/live`, { headers: { authorization } });
      const reading = events.text();
      assert.equal((await program.terminate()).code, 0, program.output);
      assert.match(await reading, /^event: /m);
    });
  });
}

describe("examples/nextjs", () => {
  it("submits with one request, and tells of the job with others", async (t) => {
    const tasks = join(examples, "nextjs", "tasks");
    const node = await nodeHere(t, { http: true, settings: { TASKS: tasks } });
    process.env["BATON_URL"] = node.url;
    t.after(() => delete process.env["BATON_URL"]);
    const { POST } = await import("../../examples/nextjs/app/api/greetings/route.ts");
    const { GET } = await import("../../examples/nextjs/app/api/greetings/[id]/route.ts");
    const { baton } = await import("../../examples/nextjs/lib/baton.ts");
    t.after(() => baton().close());

    const post = (body: unknown): Promise<Response> =>
      POST(new Request("http://app.example/api/greetings", { method: "POST", body: JSON.stringify(body) }));
    const get = async (id: string): Promise<Response> =>
      GET(new Request(`http://app.example/api/greetings/${id}`), { params: Promise.resolve({ id }) });

    const submitted = await post({ name: "Ada" });
    assert.equal(submitted.status, 202);
    const { id } = (await submitted.json()) as { id: string };
    assert.equal(submitted.headers.get("location"), `/api/greetings/${id}`);
    const done = await eventually("the greeting", async () => {
      const seen = (await (await get(id)).json()) as { status: string; greeting: unknown };
      return seen.status === "completed" && seen;
    });
    assert.equal(done.greeting, "Hello Ada");
    const refused = await post({ name: "" });
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as { error: string }).error, /name/);
    assert.equal((await get("nosuch")).status, 404);
    assert.equal((await get(`${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`)).status, 404);
  });
});
