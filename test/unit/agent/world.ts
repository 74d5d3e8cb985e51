/** An agent in this process, its link without a thread, and controllers that keep the contract. */

import { Agent } from "../../../src/agent/agent.ts";
import { ControllerLink } from "../../../src/agent/controller-link.ts";
import type { LinkPort } from "../../../src/agent/link-messages.ts";
import type { Task } from "../../../src/jobs/tasks/task.ts";
import { TaskRegistry } from "../../../src/jobs/tasks/task-registry.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import type { FakeControllers } from "../../support/fake-controller.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { recordingLog, type RecordingLog } from "../../support/node-log.ts";

export interface AgentWorldOptions {
  readonly tasks: readonly Task[];
  readonly concurrency?: number;
  readonly drain?: { readonly timeoutMs: number; readonly cleanupMs: number };
  readonly urls?: readonly string[];
}

export interface AgentWorld {
  readonly agent: Agent;
  readonly log: RecordingLog;
}

export async function startAgent(
  t: Scope,
  controllers: FakeControllers,
  options: AgentWorldOptions,
): Promise<AgentWorld> {
  const world = buildAgent(controllers, options);
  atEnd(t, () => {
    world.agent.hurry();
    return world.agent.stop();
  });
  await world.agent.start();
  return world;
}

export function buildAgent(controllers: FakeControllers, options: AgentWorldOptions): AgentWorld {
  const log = recordingLog();
  const tasks = new TaskRegistry(options.tasks);
  const platform = fakePlatform({ clock: systemClock, random: systemRandom, log });
  const settings = {
    urls: options.urls ?? controllers.urls,
    agent: "test-agent",
    capabilities: [...tasks.names()],
    queues: null,
    version: "1.2.3",
  };
  const agent = new Agent(platform, {
    tasks,
    concurrency: options.concurrency ?? 4,
    drain: options.drain ?? { timeoutMs: 2_000, cleanupMs: 300 },
    onDied: (error) => log.error({ err: error }, "the link died"),
    openLink: ({ hear }): LinkPort => {
      const link = new ControllerLink(platform, settings, (message) => queueMicrotask(() => hear(message)));
      void link.start();
      return { send: (message) => link.hear(message), close: () => link.stop() };
    },
  });
  return { agent, log };
}
