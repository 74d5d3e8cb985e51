import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { overview } from "../api/live.ts";

interface PageProps {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** One screen: its heading, what can be done, and the rest. The heading gets the focus, so that readers hear where they are. */
export function Page({ title, about, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const name = overview.value?.cluster.name;
  useEffect(() => {
    document.title = name === undefined ? `${title} · Baton` : `${title} · ${name} · Baton`;
  }, [title, name]);
  // Before it is drawn: later it would take the focus from somebody who types already.
  useLayoutEffect(() => {
    if (arrived) heading.current?.focus({ preventScroll: true });
    arrived = true;
    scrollTo(0, 0);
  }, []);
  return (
    <>
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about && <p class="muted">{about}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** The first screen of a page that was just loaded leaves the focus where the browser has put it. */
let arrived = false;
