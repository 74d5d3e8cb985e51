import { signal } from "@preact/signals";
import { overview } from "../api/live.ts";
import { signedInAs, signOut } from "../api/session.ts";
import { compact } from "../parts/format.ts";
import { place, to } from "../route.ts";
import { helpOpen } from "./help.tsx";
import { GROUPS, screens } from "./screens.ts";
import { nextTheme, theme } from "./theme.ts";
import { failed } from "./toasts.tsx";

/** On narrow screens only. */
export const menuOpen = signal(false);

/** Numbers that call for a look, beside the name of the screen. */
function badgeOf(step: string): { text: string; bad: boolean } | null {
  const now = overview.value;
  if (!now) return null;
  if (step === "" && now.alerts.length > 0) return { text: String(now.alerts.length), bad: true };
  if (step === "failures" && now.jobs.failed > 0) return { text: compact(now.jobs.failed), bad: false };
  if (step === "nodes" && now.cluster.dead_nodes > 0) {
    return { text: `${now.cluster.dead_nodes} dead`, bad: true };
  }
  return null;
}

export function Nav() {
  const current = place.value.steps[0] ?? "";
  return (
    <nav class={menuOpen.value ? "nav open" : "nav"} aria-label="Screens" id="nav">
      {(["work", "cluster", "admin"] as const).map((group) => (
        <div key={group} class="nav-group">
          <p class="nav-title">{GROUPS[group]}</p>
          <ul>
            {screens()
              .filter((screen) => screen.group === group)
              .map(({ step, title }) => {
                const badge = badgeOf(step);
                return (
                  <li key={step}>
                    <a
                      href={to([step])}
                      aria-current={current === step ? "page" : undefined}
                      onClick={() => {
                        menuOpen.value = false;
                      }}
                    >
                      {title}
                      {badge && <span class={badge.bad ? "badge bad" : "badge"}>{badge.text}</span>}
                    </a>
                  </li>
                );
              })}
          </ul>
        </div>
      ))}
      <div class="nav-foot">
        {signedInAs.value !== null && (
          <p>
            <span class="muted">signed in as</span> {signedInAs.value}{" "}
            <button
              type="button"
              class="small quiet"
              onClick={() => void signOut().catch((error: unknown) => failed("Signing out", error))}
            >
              sign out
            </button>
          </p>
        )}
        <div class="row">
          <button
            type="button"
            class="small quiet"
            onClick={nextTheme}
            aria-label={`Colours: ${theme.value}`}
          >
            {theme.value === "auto" ? "◐ auto" : theme.value === "light" ? "○ light" : "● dark"}
          </button>
          <button
            type="button"
            class="small quiet"
            title="Keyboard shortcuts"
            onClick={() => {
              helpOpen.value = true;
            }}
          >
            ? keys
          </button>
          <a class="small-link" href="docs">
            API
          </a>
        </div>
      </div>
    </nav>
  );
}
