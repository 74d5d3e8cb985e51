/** The frame around the screens, and which of them is shown. */

import type { VNode } from "preact";
import { link, overview } from "../api/live.ts";
import { mustSignIn } from "../api/session.ts";
import { place } from "../route.ts";
import { AccessScreen } from "../screens/access.tsx";
import { AuditScreen } from "../screens/audit.tsx";
import { FailuresScreen } from "../screens/failures.tsx";
import { JobScreen } from "../screens/job.tsx";
import { JobsScreen } from "../screens/jobs.tsx";
import { LeadershipScreen } from "../screens/leadership.tsx";
import { NewJobScreen } from "../screens/new-job.tsx";
import { NodesScreen } from "../screens/nodes.tsx";
import { OverviewScreen } from "../screens/overview.tsx";
import { ProcessesScreen } from "../screens/processes.tsx";
import { QueuesScreen } from "../screens/queues.tsx";
import { ScheduleFormScreen } from "../screens/schedule-form.tsx";
import { ScheduleScreen } from "../screens/schedule.tsx";
import { SchedulesScreen } from "../screens/schedules.tsx";
import { SettingsScreen } from "../screens/settings.tsx";
import { SignInScreen } from "../screens/sign-in.tsx";
import { BulkDialog } from "./bulk.tsx";
import { ConfirmDialog } from "./confirm.tsx";
import { ConnectionBanner, LinkState, PartialBanner } from "./connection.tsx";
import { Failsafe } from "./failsafe.tsx";
import { Help } from "./help.tsx";
import { menuOpen, Nav } from "./nav.tsx";
import { Page } from "./page.tsx";
import { Toasts } from "./toasts.tsx";

const SCREENS: Readonly<Record<string, (second: string | undefined) => VNode>> = {
  "": () => <OverviewScreen />,
  jobs: (second) => {
    if (second === undefined) return <JobsScreen />;
    return second === "new" ? <NewJobScreen /> : <JobScreen id={second} />;
  },
  failures: () => <FailuresScreen />,
  queues: () => <QueuesScreen />,
  schedules: (second) => {
    if (second !== undefined) return <ScheduleScreen name={second} />;
    return place.value.query["form"] ? <ScheduleFormScreen /> : <SchedulesScreen />;
  },
  nodes: () => <NodesScreen />,
  leadership: () => <LeadershipScreen />,
  processes: () => <ProcessesScreen />,
  access: () => <AccessScreen />,
  audit: () => <AuditScreen />,
  settings: () => <SettingsScreen />,
};

function screenAt([first = "", second]: readonly string[]): VNode {
  const screen = Object.hasOwn(SCREENS, first) ? SCREENS[first] : undefined;
  if (screen) return screen(second);
  return (
    <Page title="Nothing here">
      <p>
        There is no screen <code>{first}</code>. The list on the left has all of them.
      </p>
    </Page>
  );
}

export function App() {
  const { steps } = place.value;
  if (mustSignIn.value || link.value.state === "refused") {
    return (
      <>
        <SignInScreen />
        <Toasts />
      </>
    );
  }
  const name = overview.value?.cluster.name;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          Baton{name !== undefined && name !== "baton" && <span class="muted"> {name}</span>}
        </a>
        <LinkState />
        <button
          type="button"
          class="menu"
          aria-expanded={menuOpen.value}
          aria-controls="nav"
          onClick={() => {
            menuOpen.value = !menuOpen.value;
          }}
        >
          Menu
        </button>
      </header>
      <Nav />
      <main id="main" tabIndex={-1}>
        <ConnectionBanner />
        <PartialBanner />
        {/* A new key for each place: what a screen remembers is of that place alone. */}
        <Failsafe key={steps.join("/")}>{screenAt(steps)}</Failsafe>
      </main>
      <Toasts />
      <ConfirmDialog />
      <BulkDialog />
      <Help />
    </>
  );
}

/** Not by the address: what is behind the `#` says which screen it is. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
