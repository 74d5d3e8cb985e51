/**
 * The files in deploy/, and those of the project of `baton init`, as far as they can be checked without a container engine, a
 * Kubernetes or Windows: they are parsed, the Helm chart is rendered, every setting they name goes through the checks of a start, and the
 * health check runs against a node.
 */

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, it } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { loadSettings } from "../../src/config/load-settings.ts";
import type { Settings } from "../../src/config/settings.ts";
import { nodeHere } from "../support/node-here.ts";
import { renderChart } from "../support/helm-template.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const DEPLOY = join(ROOT, "deploy");
const SECRET = "0123456789abcdef0123456789abcdef0123456789abcdef";

const read = (path: string): string => readFileSync(join(DEPLOY, path), "utf8");

interface Container {
  readonly environment: Readonly<Record<string, string>>;
  readonly stop_grace_period: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}
interface Manifest {
  readonly kind: string;
  readonly spec: any;
}

const dockerfile = read("docker/Dockerfile");

/** Those of Baton only, with files of secrets in the place of those that the engine mounts. `image`: the text of its Dockerfile. */
function checkedSettings(environment: Readonly<Record<string, string>>, image = dockerfile): Settings {
  const directory = mkdtempSync(join(tmpdir(), "baton-deploy-"));
  try {
    const imageEnvironment = Object.fromEntries(
      [...image.matchAll(/\b(BATON_\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
    );
    const secret = join(directory, "secret");
    writeFileSync(secret, SECRET, { mode: 0o600 });
    const given = Object.entries({ ...imageEnvironment, ...environment }).map(([name, value]) => [
      name,
      value.startsWith("/run/secrets/") ? secret : value.replaceAll(/\$\{(\w+):\?[^}]*\}/g, "password"),
    ]);
    for (const [name] of given) assert.match(name!, /^BATON_/);
    const { settings, warnings } = loadSettings({
      environment: Object.fromEntries(given) as Record<string, string>,
      cwd: directory,
    });
    assert.deepEqual(warnings, []);
    return settings;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe("the image", () => {
  it("copies files that exist, and starts a node with valid settings", () => {
    for (const [, from] of dockerfile.matchAll(/^COPY (?!--)([^.\n]\S*(?: \S+)*) \.\/$/gm))
      for (const file of from!.split(" ")) assert.ok(existsSync(join(ROOT, file)), file);
    const settings = checkedSettings({ BATON_HTTP__HOST: "127.0.0.1" });
    assert.deepEqual([settings.data, settings.log.format], ["/data", "json"]);
    assert.match(dockerfile, /^USER node$/m);
    const [, major] = /^FROM node:(\d+)/m.exec(dockerfile)!;
    const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    assert.equal(engines.node.split(/\D+/)[1], major);
  });

  it("has a health check that tells a node that lives from one that does not", async (t) => {
    const [, command] = /^HEALTHCHECK[^[]*(\[.*\])$/ms.exec(dockerfile.replaceAll("\\\n", ""))!;
    const [, ...args] = JSON.parse(command!.split("\n")[0]!) as string[];
    const node = await nodeHere(t, { http: true });
    const { port } = new URL(node.url);
    const check = (at: string) =>
      new Promise<number>((resolve) => {
        const child = execFile(
          process.execPath,
          args.map((arg) => arg.replace("8420", at)),
        );
        child.once("exit", (code) => resolve(code!));
      });
    assert.equal(await check(port), 0);
    await node.stop();
    assert.equal(await check(port), 1);
  });
});

describe("compose files", () => {
  for (const file of globSync(["deploy/compose/*.yaml", "template/compose.yaml"], { cwd: ROOT })) {
    it(`${file} has services with valid settings, and time to drain`, () => {
      const text = readFileSync(join(ROOT, file), "utf8");
      const { services, secrets, volumes } = parse(text, { merge: true }) as {
        readonly services: Readonly<Record<string, Container>>;
        readonly secrets?: object;
        readonly volumes?: object;
      };
      const nodes = Object.values(services).filter(({ build }) => build);
      assert.ok(nodes.length > 0);
      for (const { environment, stop_grace_period: grace, build, volumes: mounted, depends_on } of nodes) {
        const context = resolve(ROOT, dirname(file), build!.context);
        assert.equal(context, file.startsWith("template") ? join(ROOT, "template") : ROOT);
        const image = readFileSync(join(context, build!.dockerfile), "utf8");
        const settings = checkedSettings(environment, image);
        assert.ok(Number.parseInt(grace, 10) * 1_000 > settings.drain.timeoutMs, grace);
        for (const name of Object.keys(depends_on ?? {})) assert.ok(name in services, name);
        for (const mount of mounted ?? []) {
          const [source] = mount.split(":") as [string];
          assert.ok(source.startsWith("./") || source in (volumes ?? {}), source);
        }
      }
      assert.equal(JSON.stringify(nodes).includes("/run/secrets/"), secrets !== undefined);
    });
  }
});

describe("the Helm chart", () => {
  const chart = join(DEPLOY, "helm", "baton");
  const fabrics = {
    peers: {},
    postgres: { postgres: { secret: "database" } },
    redis: {
      postgres: { secret: "database" },
      redis: { secret: "messages" },
      settings: { BATON_LOG__LEVEL: "debug" },
    },
  };
  const secrets: Readonly<Record<string, string>> = {
    "database/url": "postgres://baton:password@db/baton",
    "messages/url": "redis://redis:6379",
    "baton-secret/secret": SECRET,
  };

  for (const [fabric, values] of Object.entries(fabrics)) {
    it(`renders nodes of the fabric ${fabric} with valid settings, probes, and time to drain`, () => {
      const manifests = renderChart(chart, "jobs", values).flatMap((text) =>
        parseAllDocuments(text).map((document) => {
          assert.deepEqual(document.errors, []);
          return document.toJS() as Manifest;
        }),
      );
      const kinds = manifests.map(({ kind }) => kind).sort();
      assert.deepEqual(kinds, ["PodDisruptionBudget", "Service", "Service", "StatefulSet"]);
      const { spec } = manifests.find(({ kind }) => kind === "StatefulSet")!;
      const pod = spec.template.spec;
      const [{ env, livenessProbe, readinessProbe, volumeMounts }] = pod.containers;
      const environment = Object.fromEntries(
        env.map(({ name, value, valueFrom }: any): [string, string] => {
          const { secretKeyRef: key } = valueFrom ?? {};
          const found = key ? secrets[`${key.name}/${key.key}`] : (value ?? "jobs-0");
          return [name, found.replace("$(BATON_NAME)", "jobs-0")];
        }),
      );
      const settings = checkedSettings(environment);
      assert.ok(pod.terminationGracePeriodSeconds * 1_000 > settings.drain.timeoutMs);
      assert.deepEqual([livenessProbe.httpGet.path, readinessProbe.httpGet.path], ["/livez", "/readyz"]);
      const volumes = [...pod.volumes, ...(spec.volumeClaimTemplates ?? []).map((c: any) => c.metadata)];
      assert.deepEqual(
        volumes.map(({ name }: { name: string }) => name).sort(),
        volumeMounts.map(({ name }: { name: string }) => name).sort(),
      );
      assert.equal(settings.store.startsWith("postgres"), fabric !== "peers");
      assert.equal(settings.discover, fabric === "peers" ? "jobs-nodes" : "");
      assert.equal(settings.log.level, fabric === "redis" ? "debug" : "info");
    });
  }

  it("has values for all that its templates use", () => {
    assert.throws(() => renderChart(chart, "jobs", { image: null }), /\.Values\.image\.repository/);
  });
});

describe("services of an operating system", () => {
  it("of systemd start a node with valid flags, and give it time to drain", () => {
    const unit = read("systemd/baton.service");
    const [, args] = /^ExecStart=\S+ \S+\/baton\.mjs start (.*)$/m.exec(unit)!;
    assert.equal(args, "--config /etc/baton/baton.yaml --data /var/lib/baton");
    const settings = checkedSettings({ BATON_LOG__FORMAT: "json", BATON_HTTP__HOST: "127.0.0.1" });
    const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit)!;
    assert.ok(Number(seconds) * 1_000 > settings.drain.timeoutMs);
    const verified = spawnSync("systemd-analyze", ["verify", join(DEPLOY, "systemd/baton.service")], {
      encoding: "utf8",
    });
    // Not every machine has it. It complains of programs and users that are not there, in sentences of their own.
    const complaints = (verified.stderr ?? "")
      .split("\n")
      .filter((line) => line.includes("baton.service:") && !/Command .* is not executable/.test(line));
    assert.deepEqual(complaints, []);
  });

  it("of Windows run the package's own launcher, and give it time to drain", () => {
    const xml = read("windows/baton.xml");
    assert.match(xml, /node_modules\\batonjs\\bin\\baton\.mjs start --config /);
    const [, seconds] = /<stoptimeout>(\d+) sec</.exec(xml)!;
    assert.ok(Number(seconds) * 1_000 > checkedSettings({ BATON_HTTP__HOST: "127.0.0.1" }).drain.timeoutMs);
    for (const [, name] of xml.matchAll(/<env name="(\w+)"/g)) assert.match(name!, /^BATON_/);
  });
});
