/**
 * `batonjs/fastify`: the dashboard and the API of a node in a Fastify application, as a plugin. Hooks of the scope that it
 * is registered in run before it.
 *
 *     app.register(batonDashboard, { prefix: "/jobs", baton, authenticate: (request) => request.user?.permission });
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { checkNames, mount, redirectToSlash, type MountableNode, type MountOptions } from "./mount.ts";

export type { Admission, MountableNode, MountOptions } from "./mount.ts";

export interface BatonDashboardOptions extends MountOptions<FastifyRequest> {
  readonly baton: MountableNode;
  /** Where it is: `/jobs`. */
  readonly prefix?: string;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** Beside those of the plugin, Fastify passes its own on. */
const OPTIONS = ["baton", "authenticate", "prefix", "logLevel", "logSerializers"];

export async function batonDashboard(app: FastifyInstance, options: BatonDashboardOptions): Promise<void> {
  checkNames(options, OPTIONS);
  const { admit, serve } = mount(options.baton, options);
  const depth = app.prefix.split("/").length - 1;
  let closing = false;
  // Fastify waits for open answers before it closes, and events have no end of their own.
  app.addHook("preClose", async () => {
    closing = true;
  });
  // The body is read by the node's own app, with its own limit.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { raw, ip, host } = request;
    const visit = {
      request: raw,
      response: reply.raw,
      theirs: request,
      address: ip,
      host,
      stays: () => !closing,
    };
    const caller = await admit(visit);
    reply.hijack();
    // What hooks have set, as of CORS, would be lost.
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    const whole = raw.url!;
    const path = below(whole, depth);
    if (path === "" || path.startsWith("?")) return redirectToSlash(reply.raw, whole);
    Object.assign(raw, { url: path, originalUrl: whole });
    // Their hooks and logs at the end of the request see it as it came.
    const restore = (): void => void (raw.url = whole);
    reply.raw.prependOnceListener("finish", restore).prependOnceListener("close", restore);
    await serve(visit, caller);
  }

  for (const url of ["/", "/*"]) app.route({ method: METHODS, url, exposeHeadRoute: false, handler });
}

/** Without the first steps of the path, which may be parameters of the prefix. */
function below(url: string, steps: number): string {
  let at = 0;
  for (let step = 0; step < steps; step++) {
    const next = url.slice(at + 1).search(/[/?]/);
    if (next < 0) return "";
    at += next + 1;
  }
  return url.slice(at);
}
