import assert from "node:assert/strict";
import { mkdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { TestContext } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { BatonError } from "../../../src/core/errors.ts";
import type { AppOptions } from "../../../src/http/app.ts";
import { appOf, FakeNode } from "./fake-node.ts";
import { suiteDirectory } from "../../support/node-cleanup.ts";

const directory = suiteDirectory();

const SCRIPT = `console.log("${"a page ".repeat(200)}")`;

function built(name: string): string {
  const home = join(directory, name);
  mkdirSync(join(home, "assets"), { recursive: true });
  writeFileSync(join(home, "index.html"), "<!doctype html><title>Baton</title>");
  writeFileSync(join(home, "favicon.svg"), "<svg/>");
  writeFileSync(join(home, "assets", "index-abc.js"), SCRIPT);
  writeFileSync(join(home, "assets", "index-abc.js.br"), brotliCompressSync(SCRIPT));
  return home;
}

async function appWith(t: TestContext, options: Partial<AppOptions>) {
  const node = new FakeNode();
  const app = await appOf(node, { bodyLimitBytes: 1_000, ...options });
  t.after(() => app.close());
  return app;
}

describe("the dashboard of a node", () => {
  it("is at /, may load nothing but its own files, and is asked for anew each time", async (t) => {
    const app = await appWith(t, { dashboard: { enabled: true, directory: built("plain") } });
    const { statusCode, headers, body } = await app.inject("/");
    assert.equal(statusCode, 200);
    assert.match(body, /<title>Baton/);
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
    assert.equal(headers["cache-control"], "no-cache");
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /default-src 'self'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.match(policy, /require-trusted-types-for 'script'/);
    assert.doesNotMatch(policy, /unsafe|https?:|data:|\*/);
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["referrer-policy"], "no-referrer");
    assert.equal((await app.inject({ method: "HEAD", url: "/" })).statusCode, 200);
    const again = await app.inject({ url: "/", headers: { "if-none-match": String(headers["etag"]) } });
    assert.equal(again.statusCode, 304);
  });

  it("gives files whose names tell their content for a year, compressed beforehand", async (t) => {
    const app = await appWith(t, { dashboard: { enabled: true, directory: built("assets") } });
    const plain = await app.inject("/assets/index-abc.js");
    assert.equal(plain.body, SCRIPT);
    assert.equal(plain.headers["cache-control"], "public, max-age=31536000, immutable");
    assert.match(String(plain.headers["content-type"]), /javascript/);
    assert.equal(plain.headers["x-content-type-options"], "nosniff");
    const small = await app.inject({
      url: "/assets/index-abc.js",
      headers: { "accept-encoding": "br, gzip" },
    });
    assert.equal(small.headers["content-encoding"], "br");
    assert.equal(small.headers["vary"], "accept-encoding");
    assert.ok(small.rawPayload.length < SCRIPT.length / 5);
    for (const refused of ["br;q=0", "br; q=0.0, identity", "deflate", "brotli"]) {
      const headers = { "accept-encoding": refused };
      const { headers: answered, body } = await app.inject({ url: "/assets/index-abc.js", headers });
      assert.equal(answered["content-encoding"], undefined, refused);
      assert.equal(body, SCRIPT, refused);
    }
    const head = await app.inject({ method: "HEAD", url: "/assets/index-abc.js" });
    assert.equal(head.headers["content-length"], String(SCRIPT.length));
    assert.equal(head.body, "");
  });

  it("answers with 304 to whoever has the content, however its tag is written, and to nobody else", async (t) => {
    const home = built("tags");
    const app = await appWith(t, { dashboard: { enabled: true, directory: home } });
    const { headers } = await app.inject("/");
    const etag = String(headers["etag"]);
    const ask = async (tag: string): Promise<number> =>
      (await app.inject({ url: "/", headers: { "if-none-match": tag } })).statusCode;
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) assert.equal(await ask(tag), 304, tag);
    assert.equal(await ask('"other"'), 200);
    // As an upgrade of the package leaves it: another page of the same size and the same time.
    const page = join(home, "index.html");
    const { atime, mtime } = statSync(page);
    writeFileSync(page, "<!doctype html><title>baton</title>");
    utimesSync(page, atime, mtime);
    assert.equal(await ask(etag), 200);
  });

  it("gives no file that is not one of the page's", async (t) => {
    const app = await appWith(t, { dashboard: { enabled: true, directory: built("guarded") } });
    for (const url of [
      "/assets/none.js",
      "/assets/..%2findex.html",
      "/assets/%2e%2e%2f%2e%2e%2fpackage.json",
      "/assets/..%5cindex.html",
      "/assets/.hidden.js",
      "/assets/index-abc.js%00.svg",
      "/assets/index-abc.js.br",
      "/docs/assets/..%2findex.html",
      "/assets/",
      "/src",
    ]) {
      const { statusCode, json } = await app.inject(url);
      assert.ok(statusCode === 404 || statusCode === 403 || statusCode === 400, `${url}: ${statusCode}`);
      assert.equal(typeof json()["error"], "string", url);
    }
    const posted = await app.inject({ method: "POST", url: "/", payload: {} });
    assert.equal(posted.statusCode, 404);
  });

  it("leaves the API where it is", async (t) => {
    const app = await appWith(t, { dashboard: { enabled: true, directory: built("beside") } });
    assert.equal((await app.inject("/health")).json()["status"], "ok");
    assert.equal((await app.inject("/jobs/nonsense")).statusCode, 400);
    assert.equal((await app.inject("/docs/")).statusCode, 200);
    const listed = (await app.inject("/openapi.json")).json() as { paths: object };
    assert.deepEqual(
      Object.keys(listed.paths).filter((path) => /^\/(?:assets|index|favicon|$)/.test(path)),
      [],
    );
  });

  it("says what to type where it was not built, and is there as soon as it is", async (t) => {
    const home = join(directory, "later");
    const app = await appWith(t, { dashboard: { enabled: true, directory: home } });
    const missing = await app.inject("/");
    assert.equal(missing.statusCode, 503);
    assert.equal(missing.headers["content-type"], "text/html; charset=utf-8");
    assert.match(missing.body, /npm run build:dashboard/);
    built("later");
    assert.equal((await app.inject("/")).statusCode, 200);
    assert.equal((await app.inject("/assets/index-abc.js")).statusCode, 200);
  });

  it("is not there when it is switched off", async (t) => {
    const app = await appWith(t, { dashboard: { enabled: false, directory: built("off") } });
    assert.equal((await app.inject("/")).statusCode, 404);
    assert.equal((await app.inject("/assets/index-abc.js")).statusCode, 404);
    assert.equal((await app.inject("/health")).statusCode, 200);
  });
});

describe("a base path", () => {
  it("serves the page and the whole API below it, and where they were", async (t) => {
    const app = await appWith(t, {
      basePath: "/ops/baton/",
      dashboard: { enabled: true, directory: built("based") },
    });
    for (const prefix of ["", "/ops/baton"]) {
      assert.match((await app.inject(`${prefix}/`)).body, /<title>Baton/, prefix);
      assert.equal((await app.inject(`${prefix}/assets/index-abc.js`)).statusCode, 200, prefix);
      assert.equal((await app.inject(`${prefix}/health`)).json()["status"], "ok", prefix);
      assert.equal((await app.inject(`${prefix}/admin/jobs?limit=1`)).statusCode, 200, prefix);
      assert.equal(
        (await app.inject({ method: "POST", url: `${prefix}/queues/q/pause` })).statusCode,
        200,
        prefix,
      );
    }
    const bare = await app.inject("/ops/baton");
    assert.equal(bare.statusCode, 308);
    assert.equal(bare.headers["location"], "/ops/baton/");
    assert.equal((await app.inject("/ops/batonx/health")).statusCode, 404);
    assert.equal((await app.inject("/ops/health")).statusCode, 404);
  });

  it("may not be one under which the API means something", async (t) => {
    for (const basePath of ["/jobs", "/cluster/x", "/docs"]) {
      await assert.rejects(appWith(t, { basePath }), (error: unknown) => {
        assert.ok(error instanceof BatonError);
        assert.equal(error.code, "BAD_CONFIG");
        assert.equal(error.details.field, "http.base_path");
        return true;
      });
    }
  });
});
