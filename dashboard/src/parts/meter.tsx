type MeterProps = { share: number; text: string; label: string; late?: number };

/** A share between 0 and 1 as a bar with its number; `late` is from where on it is worth a look. */
export function Meter({ share, text, label, late = 0.9 }: MeterProps) {
  const width = `${Math.round(Math.min(1, Math.max(0, share)) * 100)}%`;
  return (
    <span class="meter" title={label}>
      <span class="meter-bar" aria-hidden="true">
        <span class={share >= late ? "meter-fill bad" : "meter-fill"} style={{ width }} />
      </span>
      <span class="num">{text}</span>
    </span>
  );
}

export function Progress({ percent, label }: { percent: number; label: string }) {
  return (
    <span class="meter wide">
      <progress max={100} value={percent} aria-label={label} />
      <span class="num">{Math.round(percent)}%</span>
    </span>
  );
}
