/** A small chart of the last minutes, as SVG. What it shows is also said in words above it. */

import { clock } from "./format.ts";

interface ChartProps {
  readonly title: string;
  /** In milliseconds, oldest first. */
  readonly times: readonly number[];
  readonly series: readonly {
    readonly label: string;
    /** A custom property of the style sheet. */
    readonly colour: "--accent" | "--good" | "--wait";
    /** One for each time; null where nothing is known. */
    readonly values: readonly (number | null)[];
  }[];
  readonly format: (value: number) => string;
}

/** Of the drawing, which is stretched to the size of its box; the strokes are not. */
const SIZE = 100;
/** How far the axis goes when everything is 0. */
const FLOOR = 1;

export function Chart({ title, times, series, format }: ChartProps) {
  const top = roundedUp(
    Math.max(FLOOR, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))),
  );
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const pointAt = (value: number, at: number): string => {
    const x = ((times[at]! - first) / Math.max(1, last - first)) * SIZE;
    return `${x},${SIZE - (value / top) * SIZE}`;
  };
  return (
    <figure class="chart">
      <figcaption>
        <strong class="grow">{title}</strong>
        {series.map(({ label, colour, values }) => {
          const latest = values.findLast((value) => value !== null);
          return (
            <span key={label} class="chart-key" style={{ "--key": `var(${colour})` }}>
              {label}{" "}
              <strong class="num">{latest === undefined || latest === null ? "–" : format(latest)}</strong>
            </span>
          );
        })}
      </figcaption>
      <div class="chart-box" aria-hidden="true">
        <Axis labels={[format(top), "0"]} />
        <svg viewBox={`0 0 ${SIZE} ${SIZE}`} preserveAspectRatio="none">
          {[0, SIZE / 2, SIZE].map((y) => (
            <line key={y} x2={SIZE} y1={y} y2={y} />
          ))}
          {series.map(({ label, colour, values }) => (
            <polyline
              key={label}
              style={{ stroke: `var(${colour})` }}
              points={values.flatMap((value, at) => (value === null ? [] : pointAt(value, at))).join(" ")}
            />
          ))}
        </svg>
        <span />
        <Axis labels={times.length === 0 ? [] : [first, (first + last) / 2, last].map(clock)} />
      </div>
    </figure>
  );
}

function Axis({ labels }: { labels: readonly string[] }) {
  return (
    <div class="chart-axis">
      {labels.map((label, at) => (
        <span key={at}>{label}</span>
      ))}
    </div>
  );
}

/** To the next of 1, 2, 5, 10, 20 … */
function roundedUp(value: number): number {
  const size = 10 ** Math.floor(Math.log10(value));
  return size * ([1, 2, 5].find((digit) => digit * size >= value) ?? 10);
}
