/** The response body of the overview. */

import { z } from "zod";
import { ALERT_CODES } from "../../core/health/alerts.ts";
import { fromWire, toWire } from "../schema/to-wire.ts";
import { StatusCounts } from "./fields.ts";

const QuantilesBody = z.object({ p50: z.number(), p95: z.number(), p99: z.number() });

export const AlertBody = z.object({
  code: z.enum(ALERT_CODES),
  severity: z.enum(["warning", "critical"]),
  subject: z.string().nullable().meta({ description: "the node, queue or schedule that it is about" }),
  message: z.string(),
  remedy: z.string().meta({ description: "what to do about it" }),
  since: z.string(),
});
export type AlertBody = z.output<typeof AlertBody>;

export const OverviewBody = z.object({
  at: z.string(),
  node: z.string().meta({ description: "who answers" }),
  partial: z.boolean().meta({ description: "a node could not be reached, so what it knows is missing" }),
  unreachable: z.array(z.string()),
  cluster: z.object({
    name: z.string(),
    formed: z.boolean(),
    total_nodes: z.int(),
    active_nodes: z.int(),
    draining_nodes: z.int(),
    dead_nodes: z.int(),
    joining_nodes: z.int(),
    coordination: z.string(),
    channels: z.string(),
    dispatch: z.enum(["pull", "push"]),
    store: z.string(),
  }),
  leader: z
    .object({
      node_id: z.string(),
      epoch: z.int(),
      acquired_at: z.string().nullable(),
      lease_until: z.string().nullable(),
    })
    .nullable(),
  jobs: StatusCounts,
  counted_at: z
    .string()
    .nullable()
    .meta({ description: "when the jobs were counted: many of them are not counted every second" }),
  rates: z.object({
    submitted_per_second: z.number(),
    finished_per_second: z.number(),
    failed_per_second: z.number(),
  }),
  times: z
    .object({
      wait_ms: QuantilesBody.nullable(),
      run_ms: QuantilesBody.nullable(),
      of: z.int().meta({ description: "how many finished jobs this is made of" }),
    })
    .meta({ description: "of jobs that ended in the last five minutes" }),
  backlog: z.object({
    ready: z.int().meta({ description: "jobs that are due and that nobody runs" }),
    oldest_age_ms: z.int().nullable(),
  }),
  workers: z.object({ slots: z.int(), running: z.int() }),
  alerts: z.array(AlertBody),
});
export type OverviewBody = z.output<typeof OverviewBody>;

export const alertBody = toWire(AlertBody);
export const alertOf = fromWire(AlertBody);
