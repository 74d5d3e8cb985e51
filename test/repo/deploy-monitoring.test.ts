/** What is shipped for those who run Baton names nothing that a real node does not have. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { OPERATIONS } from "../../src/api/operation-table.ts";
import { defineTask } from "../../src/jobs/tasks/task.ts";
import { suiteScope } from "../support/node-cleanup.ts";
import { finished, nodeHere, submit } from "../support/node-here.ts";
import { Scrape } from "../support/prometheus-text.ts";
import { readExpression } from "../support/promql.ts";
import { column } from "../support/columns.ts";

const read = (path: string): string => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

/** What Prometheus adds to every series. */
const ADDED = new Set(["job", "instance"]);
/** Told only once it has happened, and a healthy node does not let it happen. */
const NOT_SEEN = new Set(["status=5xx"]);

let scrape: Scrape;
let url: string;
const suite = suiteScope();

before(async () => {
  const tasks = [
    defineTask({ name: "work", run: () => 1 }),
    defineTask({
      name: "fails",
      run: () => Promise.reject(Object.assign(new Error("no"), { retryable: false })),
    }),
  ];
  const node = await nodeHere(suite, { http: true, tasks });
  url = node.url;
  await node.services.schedules.put({ name: "often", task: "work", everyMs: 1_000 });
  for (const task of ["work", "fails"]) await finished(node, await submit(node, task));
  await (await fetch(`${node.url}/jobs/none`)).text();
  scrape = await Scrape.of(node.url);
});

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

function check(what: string, expression: string): void {
  // What Grafana puts in before Prometheus sees it.
  const text = expression.replaceAll("$__rate_interval", "5m").replaceAll(/\$\w+/g, "x");
  const { named, grouped } = readExpression(text);
  const labels = new Set<string>(ADDED);
  for (const { metric, matchers } of named) {
    const family = /^(.*)_(?:bucket|sum|count)$/.exec(metric)?.[1];
    const found =
      scrape.families.get(metric) ?? (family === undefined ? undefined : scrape.families.get(family));
    assert.ok(found, `${what}: no node has ${metric}`);
    if (found.type === "histogram") assert.notEqual(metric, found.name, `${what}: ${metric} is a histogram`);
    assert.ok(found.samples.length > 0, `${what}: ${metric} has no value`);
    const own = new Set(found.samples.flatMap((sample) => Object.keys(sample.labels)));
    for (const label of own) labels.add(label);
    for (const [label, operator, value] of matchers) {
      assert.ok(own.has(label) || ADDED.has(label), `${what}: ${metric} has no label ${label}`);
      if (ADDED.has(label) || label === "queue" || operator.startsWith("!")) continue;
      for (const one of operator === "=~" ? value.split("|") : [value]) {
        const seen = found.samples.some((sample) => sample.labels[label] === one);
        assert.ok(seen || NOT_SEEN.has(`${label}=${one}`), `${what}: ${metric} never has ${label}="${one}"`);
      }
    }
  }
  for (const label of grouped) assert.ok(labels.has(label), `${what}: nothing in it has the label ${label}`);
}

describe("the board for Grafana", () => {
  const board = JSON.parse(read("grafana/baton.json")) as {
    readonly panels: readonly Panel[];
    readonly templating: {
      readonly list: readonly { readonly type: string; readonly definition?: string }[];
    };
    readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  };

  it("names only metrics and labels that a node has", () => {
    const shown = board.panels.filter(({ type }) => type !== "row");
    assert.ok(shown.length > 30, `${shown.length}`);
    for (const { title, targets } of shown) {
      assert.ok(targets && targets.length > 0, title);
      for (const { expr } of targets) check(title, expr);
    }
    for (const { expr } of board.annotations.list) check("annotation", expr);
    for (const { type, definition } of board.templating.list) {
      if (type !== "query") continue;
      const [, metric, label] = /^label_values\((.*), (\w+)\)$/.exec(definition!) ?? [];
      check("variable", `${metric} == ${metric}`);
      assert.ok(
        ADDED.has(label!) ||
          scrape.find("baton_queue_jobs").some(({ labels }) => Object.hasOwn(labels, label!)),
      );
    }
  });

  it("shows every metric of ours somewhere, here or in an alert", () => {
    const used = read("grafana/baton.json") + read("prometheus/alerts.yml");
    const unused = [...scrape.families.keys()].filter(
      (name) => name.startsWith("baton_") && !used.includes(name),
    );
    assert.deepEqual(
      unused,
      [
        "baton_lease_lost_jobs_total",
        "baton_start_time_seconds",
        "baton_worker_last_claim_seconds",
        "baton_owned_assignments",
        // Of PostgreSQL only, and without a value on this node.
        "baton_store_dead_rows",
        "baton_store_table_bytes",
      ].filter((name) => unused.includes(name)),
    );
  });
});

describe("the alert rules for Prometheus", () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly for?: string;
    readonly labels: { readonly severity: string };
    readonly annotations: Readonly<Record<string, string>>;
  }
  const { groups } = parse(read("prometheus/alerts.yml")) as {
    readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  it("name only metrics and labels that a node has", () => {
    for (const { alert, expr } of rules) check(alert, expr);
  });

  it("say each what it means and what to do, with labels that their expression keeps", () => {
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
    for (const { alert, expr, labels, annotations, ...rest } of rules) {
      assert.ok(["warning", "critical"].includes(labels.severity), alert);
      if (rest.for !== undefined) assert.match(rest.for, /^\d+[smh]$/);
      for (const name of ["summary", "description", "runbook"])
        assert.ok((annotations[name]?.length ?? 0) > 15, `${alert}: ${name}`);
      const { grouped } = readExpression(expr);
      const text = Object.values(annotations).join(" ");
      for (const [, label] of text.matchAll(/\$labels\.(\w+)/g)) {
        const kept = grouped.length === 0 || grouped.includes(label!);
        assert.ok(kept, `${alert}: its expression does not keep ${label}`);
      }
    }
  });

  it("send nobody to a route that there is not", () => {
    const known = new Set<string>(OPERATIONS.map(({ method, path }) => `${method} ${path}`));
    for (const { alert, annotations } of rules) {
      for (const [, route] of annotations["runbook"]!.matchAll(/\b((?:GET|POST|PUT|DELETE) \/[\w/{}]*)/g))
        assert.ok(known.has(route!), `${alert}: ${route}`);
    }
  });

  it("cover what must not go unnoticed", () => {
    const names = rules.map(({ alert }) => alert);
    for (const wanted of [
      "NoLeader",
      "LeaderFlapping",
      "StaleWrites",
      "BacklogOld",
      "WorkerNotClaiming",
      "NodeGone",
      "EventLoopLag",
      "FailuresRising",
      "Quarantine",
      "ScheduleLag",
      "StoreErrors",
      "OrphanAge",
    ])
      assert.ok(names.includes(`Baton${wanted}`), wanted);
  });
});

describe("the samples for autoscalers", () => {
  interface Document {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly data?: Readonly<Record<string, string>>;
    readonly spec?: {
      readonly triggers?: readonly {
        readonly type: string;
        readonly metadata: Readonly<Record<string, string>>;
      }[];
      readonly metrics?: readonly { readonly external: { readonly metric: { readonly name: string } } }[];
    };
  }
  const documents = (path: string): Document[] =>
    parseAllDocuments(read(path)).map((document) => {
      assert.deepEqual(document.errors, []);
      return document.toJS() as Document;
    });

  it("of KEDA ask for an address and a field that there are", async () => {
    const triggers = documents("keda/scaledobject.yaml").flatMap(({ spec }) => spec?.triggers ?? []);
    assert.deepEqual(column(triggers, "type"), ["metrics-api", "prometheus"]);
    const [api, prometheus] = triggers;
    const asked = new URL(api!.metadata["url"]!);
    const answer = await fetch(`${url}${asked.pathname}${asked.search}`);
    assert.equal(answer.status, 200);
    let value: unknown = await answer.json();
    for (const step of api!.metadata["valueLocation"]!.split("."))
      value = (value as Record<string, unknown>)[step];
    assert.ok(Number.isInteger(value), JSON.stringify(value));
    check("keda", prometheus!.metadata["query"]!);
  });

  it("of Kubernetes name a metric that their rule makes", () => {
    const [adapter, autoscaler] = documents("kubernetes/hpa.yaml");
    const { externalRules } = parse(adapter!.data!["config.yaml"]!) as {
      readonly externalRules: readonly {
        readonly seriesQuery: string;
        readonly metricsQuery: string;
        readonly name: { readonly as: string };
      }[];
    };
    for (const { seriesQuery, metricsQuery } of externalRules) {
      check("series", seriesQuery);
      check("metrics", metricsQuery);
    }
    assert.deepEqual(
      autoscaler!.spec!.metrics!.map(({ external }) => external.metric.name),
      externalRules.map(({ name }) => name.as),
    );
  });
});

describe("the reader of expressions", () => {
  it("finds what does not hold together, and what is not there", () => {
    for (const broken of [
      "sum by (job (baton_leader)",
      "sum(baton_leader",
      "baton_leader{role=scheduler}",
      "baton_leader}",
      "summ(baton_leader)",
      "1 > 2",
    ])
      assert.throws(() => readExpression(broken), broken);
    assert.throws(() => check("x", "baton_no_such_thing > 1"), /no node has/);
    assert.throws(() => check("x", 'baton_leader{rule="scheduler"} > 1'), /no label rule/);
    assert.throws(() => check("x", 'baton_leader{role="boss"} > 1'), /never has role="boss"/);
    assert.throws(() => check("x", "sum by (queue) (baton_leader)"), /the label queue/);
    assert.throws(() => check("x", "baton_job_run_seconds > 1"), /is a histogram/);
  });
});
