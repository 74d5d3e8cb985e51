import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Lifecycle, startWith } from "../../../src/platform/service.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";

/** Notes what is asked of it, and can be made to fail or to wait. */
class Noted extends Lifecycle {
  readonly steps: string[] = [];
  startsWith: () => Promise<void> = () => Promise.resolve();
  stopsWith: () => Promise<void> = () => Promise.resolve();

  protected override async onStart(): Promise<void> {
    this.steps.push("starting");
    await this.startsWith();
    this.steps.push("started");
  }

  protected override async onStop(): Promise<void> {
    this.steps.push("stopping");
    await this.stopsWith();
    this.steps.push("stopped");
  }
}

describe("a lifecycle", () => {
  test("starts once and stops once, however often it is asked", async () => {
    const service = new Noted();
    await Promise.all([service.stop(), service.start(), service.start(), service.stop(), service.stop()]);
    assert.deepEqual(service.steps, ["starting", "started", "stopping", "stopped"]);
  });

  test("a stop waits for the start that is under way", async () => {
    const service = new Noted();
    const ready = Promise.withResolvers<void>();
    service.startsWith = () => ready.promise;
    const starting = service.start();
    const stopping = service.stop();
    await Promise.resolve();
    assert.deepEqual(service.steps, ["starting"]);
    ready.resolve();
    await Promise.all([starting, stopping]);
    assert.deepEqual(service.steps, ["starting", "started", "stopping", "stopped"]);
  });

  test("runs from the end of the start to the beginning of the stop", async () => {
    const service = new Noted();
    const seen: boolean[] = [];
    const look = async (): Promise<void> => void seen.push(service.running);
    service.startsWith = look;
    service.stopsWith = look;
    await service.start();
    seen.push(service.running);
    await service.stop();
    assert.deepEqual([...seen, service.running], [false, true, false, false]);
  });

  test("a start that failed is told, needs no stop, and may be tried again", async () => {
    const service = new Noted();
    service.startsWith = () => Promise.reject(new Error("port in use"));
    await assert.rejects(service.start(), /port in use/);
    assert.equal(service.running, false);
    await service.stop();
    service.startsWith = () => Promise.resolve();
    await service.start();
    assert.deepEqual(service.steps, ["starting", "starting", "started"]);
    await service.stop();
  });

  test("a stop that failed is told once, and blocks nothing after it", async () => {
    const service = new Noted();
    await service.start();
    service.stopsWith = () => Promise.reject(new Error("stuck"));
    await assert.rejects(service.stop(), /stuck/);
    await service.stop();
    await service.start();
    assert.equal(service.running, true);
  });

  test("is stopped again when the rest of the start fails, and only then", async () => {
    const service = new Noted();
    const rest = (): Promise<never> => Promise.reject(new Error("wrong server"));
    await assert.rejects(startWith(service, rest), /wrong server/);
    assert.deepEqual(service.steps, ["starting", "started", "stopping", "stopped"]);
    await startWith(service, async () => assert.ok(service.running));
    assert.ok(service.running);
    await service.stop();
  });

  lifecycleStress("the plainest service", async () => ({
    service: new Noted(),
    works: async (service) => assert.ok(service.running),
  }));
});
