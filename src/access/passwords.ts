/**
 * Password hashes: scrypt, with its parameters stored in the hash, so that they can be raised later. The work is done
 * on Node's own threads, a few at a time: these also read files and resolve names, and must not all be busy with
 * logins.
 */

import { timingSafeEqual } from "node:crypto";
import { isWellKnown } from "../config/secrets/cluster-secret.ts";
import { BatonError } from "../core/errors.ts";
import type { Platform } from "../platform/platform.ts";
import { newSecret } from "../platform/random.ts";

interface Parameters {
  readonly cost: number;
  readonly r: number;
  readonly p: number;
}

/** 32 MiB and about 0.2 s for each try. Smaller, and stolen hashes tell passwords sooner; larger, and logins hold up each other. */
const PARAMETERS: Parameters = { cost: 15, r: 8, p: 3 };
const HASH_BYTES = 32;
/** What a hash that came from another node may ask of this one. */
const MEMORY_BYTES_MAX = 256 * 2 ** 20;
const P_MAX = 16;
const STORED = /^scrypt\$(\d{1,2})\$(\d{1,3})\$(\d{1,2})\$([A-Za-z0-9_-]{16,64})\$([A-Za-z0-9_-]{43})$/;

export const PASSWORD_LENGTH_MIN = 12;
export const PASSWORD_LENGTH_MAX = 256;
const DIFFERENT_MIN = 5;
export const passwordRule = `a password of at least ${PASSWORD_LENGTH_MIN} characters, not a well-known one and not the user's name`;

const AT_ONCE = 2;
/** More who wait would wait longer than any browser does. */
const WAITING_MAX = 50;

/** Why a password will not do, after "the password"; null if it will. */
export function passwordWeakness(password: string, user: string): string | null {
  const letters = Array.from(password);
  if (letters.length < PASSWORD_LENGTH_MIN)
    return `is too short: ${letters.length} characters, and ${PASSWORD_LENGTH_MIN} are needed`;
  if (letters.length > PASSWORD_LENGTH_MAX) return `is longer than ${PASSWORD_LENGTH_MAX} characters`;
  if (new Set(letters).size < DIFFERENT_MIN) return "has too few different characters";
  if (isWellKnown(password)) return "is known to everybody";
  if (password.toLowerCase().includes(user.toLowerCase()) && letters.length < user.length + 8)
    return "is little more than the name";
  return null;
}

export type Passwords = ReturnType<typeof passwordHashes>;

export function passwordHashes({ machine }: Pick<Platform, "machine">) {
  const waiting: (() => void)[] = [];
  let busy = 0;
  /** Takes the place of a user's that is not there, so that a login takes as long. */
  let nobodys: string | null = null;

  async function turn(): Promise<void> {
    if (busy >= AT_ONCE) {
      if (waiting.length >= WAITING_MAX) {
        throw new BatonError("TOO_MANY_REQUESTS", "too many logins at the same time; try again in a moment");
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    busy++;
  }

  async function derive(password: string, salt: string, { cost, r, p }: Parameters): Promise<Buffer> {
    await turn();
    try {
      // Two spellings of one letter are one password.
      return await machine.scrypt(password.normalize("NFC"), salt, HASH_BYTES, {
        N: 2 ** cost,
        r,
        p,
        maxmem: MEMORY_BYTES_MAX + 2 ** 20,
      });
    } finally {
      busy--;
      waiting.shift()?.();
    }
  }

  async function hash(password: string): Promise<string> {
    const salt = newSecret().slice(0, 24);
    const made = await derive(password, salt, PARAMETERS);
    const { cost, r, p } = PARAMETERS;
    return `scrypt$${cost}$${r}$${p}$${salt}$${made.toString("base64url")}`;
  }

  return {
    hash,

    /** `stored` is null where there is no such user: false then, and just as late. */
    async matches(password: string, stored: string | null): Promise<boolean> {
      if (stored === null) nobodys ??= await hash(newSecret());
      const parts = STORED.exec(stored ?? nobodys!);
      if (!parts) return false;
      const [, cost, r, p, salt, known] = parts;
      const parameters = { cost: Number(cost), r: Number(r), p: Number(p) };
      if (memoryOf(parameters) > MEMORY_BYTES_MAX || parameters.p > P_MAX) return false;
      const made = await derive(password, salt!, parameters);
      return timingSafeEqual(made, Buffer.from(known!, "base64url")) && stored !== null;
    },
  };
}

function memoryOf({ cost, r }: Parameters): number {
  return 128 * r * 2 ** cost;
}
