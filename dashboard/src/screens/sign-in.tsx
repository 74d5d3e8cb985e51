/** Asks for the name and the password of a user. */

import { useRef } from "preact/hooks";
import { signIn } from "../api/session.ts";
import { ProblemNote } from "../parts/notes.tsx";
import { useSubmission } from "../parts/submission.ts";

export function SignInScreen() {
  const [user, password] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)];
  const { onSubmit, busy, problem } = useSubmission(() =>
    signIn(user.current!.value, password.current!.value),
  );
  return (
    <main class="sign-in" id="main">
      <h1>Sign in to Baton</h1>
      {problem && <ProblemNote problem={problem} />}
      <form class="form" onSubmit={onSubmit}>
        <label>
          <span>Name</span>
          <input ref={user} required autocomplete="username" spellcheck={false} />
        </label>
        <label>
          <span>Password</span>
          <input ref={password} type="password" required autocomplete="current-password" />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
      </form>
      <p class="muted">
        No user yet? An administrator adds one: <code>baton user add NAME --permission operate</code>
      </p>
    </main>
  );
}
