import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";

/** Readable for its owner alone from the first moment on. Throws EEXIST rather than write over anything. */
export function writeSecretFile(file: string, secret: string): void {
  const handle = openSync(file, "wx", 0o600);
  try {
    writeSync(handle, `${secret}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
