/** Who may use the cluster: tokens for programs, users for people. For those who have `admin`. */

import { barredFrom, session } from "../api/session.ts";
import { Page } from "../shell/page.tsx";
import { Tokens } from "./tokens.tsx";
import { Users } from "./users.tsx";

export function AccessScreen() {
  const barred = barredFrom("GET /tokens");
  const about = "Tokens are for programs, users for people. Each permission includes those before it.";
  return (
    <Page title="Access" about={about}>
      {barred !== null && <p class="note wait">{barred}</p>}
      {barred === null && session.value?.open && (
        <div class="note wait" role="status">
          <p>
            <strong>This node asks nobody.</strong> It listens to its own machine only, and whoever is there
            may do everything. Tokens and users count as soon as it listens to others, or with{" "}
            <code>access.required: always</code>.
          </p>
        </div>
      )}
      {barred === null && <Tokens />}
      {barred === null && <Users />}
    </Page>
  );
}
