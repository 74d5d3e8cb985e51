type MeterProps = { share: number; text: string; label: string; late?: number };

/** A share between 0 and 1 as a bar with its number; `late` is from where on it is worth a look. */
export function Meter({ share, text, label, late = 0.9 }: MeterProps) {
  return (
    <span class="meter" title={label}>
      <progress value={share} class={share >= late ? "bad" : undefined} aria-hidden="true" />
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
