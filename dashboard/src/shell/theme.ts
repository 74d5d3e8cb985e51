/** Light or dark: as the system has it, unless somebody chose. */

import { effect, signal } from "@preact/signals";

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const KEY = "baton-theme";

export const theme = signal<Theme>(stored());

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return THEMES.find((each) => each === value) ?? "auto";
  } catch {
    return "auto"; // a browser that keeps nothing for us
  }
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
}

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // It holds until the page is left.
  }
});
