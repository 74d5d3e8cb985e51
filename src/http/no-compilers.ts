import type { FastifyServerOptions } from "fastify";

/** Requests and replies are checked and written by api/schema/operation-schema.ts; Fastify need not load its compilers. */
export const NO_COMPILERS: Pick<FastifyServerOptions, "schemaController"> = {
  schemaController: {
    compilersFactory: {
      buildValidator: (() => () => () => true) as never,
      buildSerializer: (() => () => JSON.stringify) as never,
    },
  },
};
