/** Settings loaded in a directory that is new for each test, with nothing of this machine in them. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach } from "node:test";
import { type Loaded, type LoadOptions, loadSettings } from "../../../src/config/load-settings.ts";
import { BatonError } from "../../../src/core/errors.ts";

const root = mkdtempSync(join(tmpdir(), "baton-config-"));
let count = 0;
export let cwd = root;

beforeEach(() => {
  cwd = join(root, String(count++));
  mkdirSync(cwd);
});
after(() => rmSync(root, { recursive: true, force: true }));

export function load(options: LoadOptions = {}): Loaded {
  return loadSettings({ cwd, environment: {}, hostname: "host-1", ...options });
}

export function write(text: string, name = "baton.yaml"): void {
  writeFileSync(join(cwd, name), text);
}

export function mistakes(options: LoadOptions = {}): readonly string[] {
  try {
    load(options);
  } catch (error) {
    assert.ok(error instanceof BatonError);
    assert.equal(error.code, "BAD_CONFIG");
    return error.details["mistakes"] as readonly string[];
  }
  assert.fail("the settings were accepted");
}
