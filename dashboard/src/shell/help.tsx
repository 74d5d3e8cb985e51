import { signal } from "@preact/signals";
import { Dialog } from "./dialog.tsx";
import { screens } from "./screens.ts";

export const helpOpen = signal(false);

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "Search, or the list of jobs"],
  ["c", "A new job"],
  ["t", "Light, dark, or as the system has it"],
  ["?", "This list"],
  ["Esc", "Close a dialog"],
];

export function Help() {
  if (!helpOpen.value) return null;
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Keyboard" onClose={close}>
      <div class="dialog-body keys">
        <dl>
          {screens().map(({ key, title }) => (
            <div key={key}>
              <dt>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>
              <dd>{title}</dd>
            </div>
          ))}
        </dl>
        <dl>
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </div>
      <div class="row end">
        <button type="button" class="primary" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
