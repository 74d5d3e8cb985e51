/**
 * Sends files that the build made, flat in one directory, and its compressed copy where the caller accepts it. The tag of
 * a file is made of its content: packages are installed with the same time for every file, and an upgraded page may have
 * the size of the one before it.
 */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { FastifyReply, FastifyRequest } from "fastify";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const COMPRESSED = [
  { encoding: "br", suffix: ".br" },
  { encoding: "gzip", suffix: ".gz" },
] as const;

/** No separator and no leading dot: no name leads out of the directory. */
const FILE_NAME = /^[\w-][\w.-]*$/;

/** False if there is no such file, and then nothing was sent. */
export async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: { readonly directory: string; readonly name: string; readonly cacheControl: string },
): Promise<boolean> {
  const { directory, name, cacheControl } = file;
  const type = TYPES[extname(name)];
  if (!FILE_NAME.test(name) || type === undefined) return false;
  const found = await readAccepted(join(directory, name), request.headers["accept-encoding"] ?? "");
  if (found === null) return false;
  const etag = `"${createHash("sha256").update(found.content).digest("base64url")}"`;
  reply.headers({ etag, "cache-control": cacheControl, vary: "accept-encoding" });
  if (isKnown(etag, request.headers["if-none-match"])) {
    reply.code(304).send();
    return true;
  }
  if (found.encoding !== null) reply.header("content-encoding", found.encoding);
  reply.type(type).send(found.content);
  return true;
}

interface Found {
  readonly content: Buffer;
  readonly encoding: string | null;
}

async function readAccepted(path: string, accepted: string): Promise<Found | null> {
  for (const { encoding, suffix } of COMPRESSED) {
    if (!accepts(accepted, encoding)) continue;
    const content = await contentOf(`${path}${suffix}`);
    if (content !== null) return { content, encoding };
  }
  const content = await contentOf(path);
  return content && { content, encoding: null };
}

async function contentOf(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR") return null;
    throw error;
  }
}

/** `br;q=0` refuses it. */
function accepts(header: string, encoding: string): boolean {
  return header.split(",").some((part) => {
    const [name, quality = "q=1"] = part.toLowerCase().split(";");
    return name!.trim() === encoding && Number(quality.trim().replace("q=", "")) > 0;
  });
}

/** A proxy that compresses an answer makes its tag a weak one. */
function isKnown(etag: string, header: string | undefined): boolean {
  const tags = (header ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
