/**
 * The OpenAPI document and the page that shows it, both built from the routes. The files of the page are part of the
 * package.
 */

import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { SESSION_COOKIE } from "../api/bodies/session-cookie.ts";

/** Before the routes: it collects them as they are declared. */
export async function collectRoutes(app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Baton",
        version,
        description:
          'A highly available job cluster. Refusals are flat: {"error": CODE, "message": …}; test the code, never the text.',
      },
      components: {
        securitySchemes: {
          token: { type: "http", scheme: "bearer", description: "as `baton token create` prints it" },
          session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE },
        },
      },
      security: [{ token: [] }, { session: [] }],
      tags: [
        { name: "jobs", description: "Submit jobs, look at them, steer them" },
        { name: "functions", description: "Run a task for a caller who waits" },
        { name: "queues", description: "Pause and resume queues" },
        { name: "schedules", description: "Jobs by the clock" },
        { name: "controller", description: "What agents do, and callers of whoever leads" },
        { name: "cluster", description: "The nodes together: who is there, who leads, how they fare" },
        { name: "access", description: "Who may do what: tokens, users and sessions" },
        { name: "node", description: "This node: health, role, promises" },
      ],
    },
  });
}

export async function serveDocs(app: FastifyInstance): Promise<void> {
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
  await app.register(swaggerUi, {
    routePrefix: "/docs",
    uiConfig: { docExpansion: "list", displayRequestDuration: true, validatorUrl: null },
  });
}
