/**
 * A wall clock that can be set, for a process: a library that is loaded into it adds what stands in a file to the time of the day
 * and leaves monotonic time alone. It is compiled with the system's C compiler; null where there is none.
 */

import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { ProcessOptions } from "./process-node.ts";
import { BIN } from "./process.ts";

const SOURCE = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t zero = 0;
static const volatile int64_t *ahead = &zero; /* seconds */
static int (*real_clock)(clockid_t, struct timespec *);
static int (*real_day)(struct timeval *, void *);

__attribute__((constructor)) static void begin(void) {
  real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  real_day = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
  const char *path = getenv("WALL_CLOCK_AHEAD");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) ahead = page;
}

int clock_gettime(clockid_t which, struct timespec *at) {
  if (!real_clock) begin();
  int result = real_clock(which, at);
  if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) at->tv_sec += *ahead;
  return result;
}

int gettimeofday(struct timeval *at, void *zone) {
  if (!real_day) begin();
  int result = real_day(at, zone);
  if (result == 0) at->tv_sec += *ahead;
  return result;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
`;

export interface WallClock {
  readonly command: NonNullable<ProcessOptions["command"]>;
  set(aheadSeconds: number): void;
}

/** Compiles the library; gives clocks that run right until they are set. */
export function wallClocks(dir: string): ((name: string) => WallClock) | null {
  if (process.platform !== "linux") return null;
  const [source, library] = [join(dir, "wall-clock.c"), join(dir, "wall-clock.so")];
  writeFileSync(source, SOURCE);
  const made = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  if (made.status !== 0) return null;
  return (name) => {
    const file = join(dir, `${name}.ahead`);
    const set = (aheadSeconds: number): void => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(aheadSeconds));
      // In place: the process has this very file in its memory.
      const at = openSync(file, "r+");
      writeSync(at, bytes, 0, 8, 0);
      closeSync(at);
    };
    writeFileSync(file, Buffer.alloc(8));
    return {
      set,
      command: (args) => [
        "env",
        [`LD_PRELOAD=${library}`, `WALL_CLOCK_AHEAD=${file}`, process.execPath, BIN, ...args],
      ],
    };
  };
}
