/**
 * The OpenAPI document and the page that shows it, both built from the table of operations. The files of the page are
 * part of the package.
 */

import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import type { Operation } from "../api/operation.ts";
import { routerPath } from "../api/peer-request-handler.ts";
import { schemaOf } from "../api/schema/operation-schema.ts";
import { SESSION_COOKIE } from "../api/bodies/session-cookie.ts";

export async function serveDocs(
  app: FastifyInstance,
  { version, operations }: { readonly version: string; readonly operations: readonly Operation[] },
): Promise<void> {
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
  // Never called: the plugin collects routes as they are declared.
  for (const operation of operations) {
    app.route({
      method: operation.method,
      url: routerPath(operation.path),
      schema: schemaOf(operation),
      exposeHeadRoute: false,
      handler: () => {},
    });
  }
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
  await app.register(swaggerUi, {
    routePrefix: "/docs",
    uiConfig: { docExpansion: "list", displayRequestDuration: true, validatorUrl: null },
  });
}
