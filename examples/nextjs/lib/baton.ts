import { BatonClient } from "batonjs/client";

/** Made by the first request: a build has no cluster to talk to. */
let client: BatonClient | null = null;

export function baton(): BatonClient {
  return (client ??= new BatonClient({ url: process.env["BATON_URL"] ?? "http://127.0.0.1:8420" }));
}
