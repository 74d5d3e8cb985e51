/** A small chart of the last minutes. What it shows is also said in words above it. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { repaint } from "../shell/theme.ts";
import { clock } from "./format.ts";

export interface ChartSeries {
  readonly label: string;
  /** A custom property of the style sheet. */
  readonly colour: "--accent" | "--good" | "--bad" | "--wait" | "--muted";
  /** One for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  /** In seconds. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  /** Of things that are not halved. */
  readonly whole?: boolean;
}

const HEIGHT = 120;
const WHOLE_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();
/** How far the axis goes when everything is 0. */
const FLOOR = 1;

export function Chart({ title, times, series, format, whole = false }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data: uPlot.AlignedData = [[...times], ...series.map(({ values }) => [...values])];
  const latest = useRef(data);
  latest.current = data;
  const painted = repaint.value;

  useEffect(() => {
    const element = box.current!;
    const options = optionsFor(element, series, format, whole);
    const drawn = new uPlot(options, latest.current, element);
    plot.current = drawn;
    const resized = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== drawn.width) drawn.setSize({ width, height: HEIGHT });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
    // The colours are read when it is drawn anew.
  }, [painted]);

  useEffect(() => {
    plot.current?.setData(data);
  }, [times.length, times.at(-1), times[0]]);

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        {series.map(({ label, colour, values }) => {
          const last = values.findLast((value) => value !== null);
          return (
            <span key={label} class="chart-key" style={{ "--key": `var(${colour})` }}>
              {label} <strong class="num">{last === undefined || last === null ? "–" : format(last)}</strong>
            </span>
          );
        })}
      </figcaption>
      <div ref={box} class="chart-box" aria-hidden="true" />
    </figure>
  );
}

function optionsFor(
  element: HTMLElement,
  series: readonly ChartSeries[],
  format: (value: number) => string,
  whole: boolean,
): uPlot.Options {
  const muted = colourOf(element, "--muted");
  const grid = { stroke: colourOf(element, "--line"), width: 1 };
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: muted, grid, ticks: { show: false }, font };
  return {
    width: Math.max(element.clientWidth, 100),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: {
      x: { time: true },
      y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, FLOOR) * 1.1] },
    },
    axes: [
      // The formats of uPlot depend on the system's language, and fail where there is none.
      { ...axis, space: 70, size: 22, values: (_plot, splits) => splits.map((at) => clock(at * 1_000)) },
      {
        ...axis,
        space: 30,
        size: 46,
        ...(whole && { incrs: WHOLE_STEPS }),
        values: (_plot, splits) => splits.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...series.map(({ label, colour }) => ({
        label,
        stroke: colourOf(element, colour),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
      })),
    ],
  };
}

/** As it is now: custom properties hold both colours, and only a property of the browser's own resolves them. */
function colourOf(element: HTMLElement, property: string): string {
  element.style.color = `var(${property})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}
