/** The metrics of this node, for Prometheus. */

import { z } from "zod";
import { answer, operation } from "../../operation.ts";

export const prometheus = operation("GET /metrics", {
  name: "prometheus",
  summary: "The metrics of this node as text for Prometheus",
  tag: "node",
  permission: "public",
  replies: { 200: z.string().meta({ description: "the text format of Prometheus, version 0.0.4" }) },
  async handler({ metrics }) {
    return answer(200, await metrics.text(), { "content-type": metrics.contentType });
  },
});
