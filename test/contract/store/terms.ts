import assert from "node:assert/strict";
import type { Term } from "../../../src/core/leadership/term.ts";
import { node, type Promises } from "../../support/store-world.ts";

const A = { name: node("node-a"), incarnation: "1" };
const B = { name: node("node-b"), incarnation: "1" };
const elsewhere = (epoch: number, fields: Partial<Term> = {}): Term => ({
  role: "scheduler",
  leader: node("node-b"),
  incarnation: "9",
  epoch,
  ...fields,
});

export const termPromises: Promises = {
  "a role that nobody held has no term": async (world) => {
    assert.equal(await world.store.terms.read("scheduler"), null);
  },

  "a granted term names its leader and is read back": async (world) => {
    const term = await world.store.terms.grant("scheduler", A);
    assert.deepEqual(
      { ...term },
      { role: "scheduler", leader: "node-a", incarnation: "1", epoch: term.epoch },
    );
    assert.ok(term.epoch > 0);
    assert.deepEqual(await world.store.terms.read("scheduler"), term);
  },

  "epochs grow with every grant, whoever is granted": async (world) => {
    const epochs: number[] = [];
    for (const who of [A, B, B, A, A]) epochs.push((await world.store.terms.grant("scheduler", who)).epoch);
    for (let i = 1; i < epochs.length; i++) assert.equal(epochs[i], epochs[i - 1]! + 1);
  },

  "candidates that ask at the same time get different epochs": async (world) => {
    const terms = await Promise.all([A, B, A, B, A].map((who) => world.store.terms.grant("scheduler", who)));
    assert.equal(new Set(terms.map((term) => term.epoch)).size, 5);
    const newest = terms.reduce((x, y) => (x.epoch > y.epoch ? x : y));
    assert.deepEqual(await world.store.terms.read("scheduler"), newest);
  },

  "roles count on their own": async (world) => {
    const first = await world.store.terms.grant("scheduler", A);
    await world.store.terms.grant("scheduler", A);
    const other = await world.store.terms.grant("log_compactor", B);
    assert.equal(other.epoch, first.epoch);
    assert.equal(await world.store.terms.read("metrics_aggregator"), null);
    assert.equal((await world.store.terms.read("scheduler"))!.epoch, first.epoch + 1);
  },

  "a higher term from elsewhere is admitted and counted on from": async (world) => {
    const old = await world.store.terms.grant("scheduler", A);
    const term = elsewhere(old.epoch + 40);
    assert.equal(await world.store.terms.admit(term), true);
    assert.deepEqual(await world.store.terms.read("scheduler"), term);
    assert.equal((await world.store.terms.grant("scheduler", A)).epoch, term.epoch + 1);
  },

  "a lower term from elsewhere is refused": async (world) => {
    await world.store.terms.admit(elsewhere(5));
    assert.equal(await world.store.terms.admit(elsewhere(4)), false);
    assert.deepEqual(await world.store.terms.read("scheduler"), elsewhere(5));
  },

  "the same term is admitted again, a foreign one of the same epoch is not": async (world) => {
    await world.store.terms.admit(elsewhere(5));
    assert.equal(await world.store.terms.admit(elsewhere(5)), true);
    assert.equal(await world.store.terms.admit(elsewhere(5, { leader: node("node-c") })), false);
    assert.equal(await world.store.terms.admit(elsewhere(5, { incarnation: "10" })), false);
    assert.deepEqual(await world.store.terms.read("scheduler"), elsewhere(5));
  },
};
