/** Process groups, as in POSIX: a negative id addresses all processes of the group. */

export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

export function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch (error) {
    // macOS says EPERM where only zombies are left.
    return !isGone(error);
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ESRCH" || code === "EPERM";
}
