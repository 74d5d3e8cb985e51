import { useState } from "preact/hooks";

/** Only where the browser lets a page write to the clipboard: on loopback and with TLS. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false);
  if (!("clipboard" in navigator)) return null;
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button
      type="button"
      class="small quiet"
      aria-label={`Copy ${what}`}
      onClick={() => void copy().catch(() => {})}
    >
      {done ? "copied" : "copy"}
    </button>
  );
}
