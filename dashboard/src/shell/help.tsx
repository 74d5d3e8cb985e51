import { signal } from "@preact/signals";
import { Facts } from "../parts/table.tsx";
import { Dialog } from "./dialog.tsx";
import { screens } from "./screens.ts";

export const helpOpen = signal(false);

/** What happens, and the keys to press one after the other. */
const KEYS: readonly (readonly [what: string, ...keys: string[]])[] = [
  ["Search, or the list of jobs", "/"],
  ["A new job", "c"],
  ["Light, dark, or as the system has it", "t"],
  ["This list", "?"],
  ["Close a dialog", "Esc"],
];

export function Help() {
  if (!helpOpen.value) return null;
  const close = (): void => {
    helpOpen.value = false;
  };
  const all = [...screens().map(({ key, title }) => [title, "g", key] as const), ...KEYS];
  return (
    <Dialog title="Keyboard" onClose={close}>
      <div class="dialog-body">
        <Facts of={all.map(([what, ...keys]) => [what, keys.flatMap((key) => [<kbd>{key}</kbd>, " "])])} />
      </div>
      <div class="row end">
        <button type="button" class="primary" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
