/** The node wants to know who asks. */

import { useState } from "preact/hooks";
import { asProblem } from "../api/problem.ts";
import type { Problem } from "../api/problem.ts";
import { signIn } from "../api/session.ts";
import { ProblemNote } from "../parts/notes.tsx";

export function SignInScreen() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(text(form, "user"), text(form, "password"));
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in" id="main">
      <h1>Sign in to Baton</h1>
      {problem && <ProblemNote problem={problem} />}
      <form class="form" onSubmit={(event) => void submit(event)}>
        <label>
          <span>Name</span>
          <input name="user" required autocomplete="username" spellcheck={false} />
        </label>
        <label>
          <span>Password</span>
          <input name="password" type="password" required autocomplete="current-password" />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
      <p class="muted">
        No user yet? An administrator makes one: <code>baton user add NAME --permission operate</code>
      </p>
    </main>
  );
}

function text(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}
