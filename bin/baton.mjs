#!/usr/bin/env node
// Plain JavaScript on purpose: it must run on an older Node, if only to find a newer one.
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import module, { createRequire } from "node:module";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NEEDED = [24, 16];
const PASSED_ON = ["SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"];
const self = fileURLToPath(import.meta.url);

if (isNewEnough(process.versions.node)) {
  dieWithLauncher();
  keepCompiled();
  const { run } = await import(pathToFileURL(entryPoint()).href);
  await run();
} else {
  const runtime = localRuntime();
  if (runtime === null) {
    process.stderr.write(
      `baton needs Node ${NEEDED.join(".")} or newer and this is ${process.versions.node}: install a newer Node, or run npm install without --omit=optional\n`,
    );
    process.exit(1);
  }
  launch(runtime);
}

function isNewEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}

/** For the next start. In a directory of the user's own, because what others may write to could be replaced by them. */
function keepCompiled() {
  const { XDG_CACHE_HOME, LOCALAPPDATA, HOME } = process.env;
  const caches = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && join(HOME, ".cache"));
  // NODE_COMPILE_CACHE goes first. Where the directory cannot be written, Node compiles each time.
  if (caches) module.enableCompileCache(join(caches, "baton"));
}

/** The sources in a checkout, the build in an installed package: Node strips no types below node_modules. */
function entryPoint() {
  const root = dirname(dirname(self));
  const installed = root.split(sep).includes("node_modules");
  const places = [join(root, "dist", "cli", "main.js"), join(root, "cli", "main.js")];
  const source = join(root, "src", "cli", "main.ts");
  const found = (installed ? places : [source, ...places]).find((place) => existsSync(place));
  if (found === undefined) {
    process.stderr.write(`baton is not complete: neither ${source} nor a build of it is there\n`);
    process.exit(1);
  }
  return found;
}

/** The Node that came with our optional dependencies, unless that is what runs already. */
function localRuntime() {
  const system = process.platform === "win32" ? "win" : process.platform;
  try {
    const manifest = createRequire(self).resolve(`node-${system}-${process.arch}/package.json`);
    const runtime = join(dirname(manifest), "bin", system === "win" ? "node.exe" : "node");
    return existsSync(runtime) && realpathSync(runtime) !== realpathSync(process.execPath) ? runtime : null;
  } catch {
    return null;
  }
}

function launch(runtime) {
  const child = spawn(runtime, [...process.execArgv, self, ...process.argv.slice(2)], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, BATON_LAUNCHER: String(process.pid) },
  });
  // On Windows the console tells both, and to kill would mean to end at once, whatever the signal.
  const passOn = process.platform === "win32" ? () => {} : (signal) => child.kill(signal);
  for (const signal of PASSED_ON) process.on(signal, passOn);
  child.on("error", (error) => {
    process.stderr.write(`baton could not start ${runtime}: ${error.message}\n`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    // End the same way, so that a shell or a supervisor sees the signal and not a number.
    for (const each of PASSED_ON) process.removeAllListeners(each);
    process.kill(process.pid, signal);
  });
}

/** Whoever kills the launcher with -9 means the node: without this it would live on, holding port and data. */
function dieWithLauncher() {
  const launcher = process.env.BATON_LAUNCHER;
  delete process.env.BATON_LAUNCHER;
  if (launcher === undefined || process.channel === undefined) return;
  const die = () => process.kill(process.pid, "SIGKILL");
  // Killed before we could look: whoever is our parent now did not ask for us.
  if (launcher !== String(process.ppid)) die();
  process.on("disconnect", die);
  // The channel must not keep a finished command alive.
  process.channel.unref();
}
