import { createClient } from "batonjs/client";

const open = () => createClient({ urls: process.env["BATON_URL"] ?? "http://127.0.0.1:8420" });

/** Made by the first request: a build has no cluster to talk to. */
let client: ReturnType<typeof open> | null = null;

export const baton = () => (client ??= open());
