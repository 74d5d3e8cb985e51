/**
 * `batonjs/express`: the dashboard and the API of a node in an Express application. Also for others with middleware of
 * this form, as NestJS on Express, and for `createServer` of Node.
 *
 *     app.use("/jobs", dashboard(baton, { authenticate: (request) => (request.user?.isAdmin ? "admin" : null) }));
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { OuterCaller } from "../../http/outer-callers.ts";
import { checkNames, mount, redirectToSlash, type MountableNode, type MountOptions } from "./mount.ts";

export type { Admission, MountableNode, MountOptions } from "./mount.ts";

/** What Express adds to the request of Node, as far as it is used here. */
export interface ExpressRequest extends IncomingMessage {
  readonly baseUrl?: string;
  readonly originalUrl?: string;
  readonly ip?: string | undefined;
  readonly host?: string;
}

type Next = (error?: unknown) => void;

export function dashboard<Request extends ExpressRequest = ExpressRequest>(
  baton: MountableNode,
  options: MountOptions<Request> = {},
): (request: Request, response: ServerResponse, next?: Next) => void {
  checkNames(options, ["authenticate"]);
  const { admit, serve } = mount(baton, options);

  async function answer(request: Request, response: ServerResponse, next: Next): Promise<void> {
    const { baseUrl = "", originalUrl = request.url!, ip, host, socket } = request;
    if (baseUrl !== "" && originalUrl.split("?", 1)[0] === baseUrl)
      return redirectToSlash(response, originalUrl);
    const address = ip ?? socket.remoteAddress ?? "";
    const visit = { request, response, theirs: request, address, host, stays: () => true };
    let caller: OuterCaller;
    try {
      caller = await admit(visit);
    } catch (error) {
      return next(error);
    }
    await serve(visit, caller);
  }

  return (request, response, next = () => response.destroy()) => void answer(request, response, next);
}
