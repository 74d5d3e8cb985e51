import type { RenderableProps } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

type DialogProps = RenderableProps<{ title: string; onClose: () => void }>;

/** The browser's own: it keeps the focus inside, closes with Escape and gives the focus back. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={heading}>{title}</h2>
      {children}
    </dialog>
  );
}
