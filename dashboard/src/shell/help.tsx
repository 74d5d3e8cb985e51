import { signal } from "@preact/signals";
import { Dialog } from "./dialog.tsx";
import { screens } from "./screens.ts";

export const helpOpen = signal(false);

/** The keys to press, one after the other, and what happens. */
type Shortcut = readonly [keys: readonly string[], what: string];

const KEYS: readonly Shortcut[] = [
  [["/"], "Search, or the list of jobs"],
  [["c"], "A new job"],
  [["t"], "Light, dark, or as the system has it"],
  [["?"], "This list"],
  [["Esc"], "Close a dialog"],
];

function Shortcuts({ of }: { of: readonly Shortcut[] }) {
  return (
    <dl>
      {of.map(([keys, what]) => (
        <div key={what}>
          <dt>{keys.flatMap((key) => [<kbd>{key}</kbd>, " "])}</dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Help() {
  if (!helpOpen.value) return null;
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Keyboard" onClose={close}>
      <div class="dialog-body keys">
        <Shortcuts of={screens().map(({ key, title }) => [["g", key], title])} />
        <Shortcuts of={KEYS} />
      </div>
      <div class="row end">
        <button type="button" class="primary" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
