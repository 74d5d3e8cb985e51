/** The settings of this node, and the source of each value. */

import { z } from "zod";
import { answer, operation } from "../../operation.ts";

export const getSettings = operation("GET /node/settings", {
  name: "get_settings",
  summary: "The settings of this node with their sources; secrets are hidden",
  tag: "node",
  permission: "operate",
  replies: {
    200: z.object({
      node: z.string(),
      settings: z.array(
        z.object({
          path: z.string(),
          value: z.unknown().meta({ description: "as it would be written in the file" }),
          source: z.string().nullable().meta({
            description:
              "default, a profile, file:line:column, a variable, a flag, or why it was chosen at the start",
          }),
          is_default: z.boolean(),
        }),
      ),
    }),
  },
  handler: ({ identity, settings }) =>
    answer(200, {
      node: identity.name,
      settings: settings
        .list()
        .map(({ path, value, source, isDefault }) => ({ path, value, source, is_default: isDefault })),
    }),
});
