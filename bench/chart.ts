/** A bar chart as SVG, for the pages of the documentation: groups of horizontal bars on one scale that begins at zero. */

import { number } from "./table.ts";

export interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly groups: readonly Group[];
}

export interface Group {
  readonly label: string;
  readonly bars: readonly Bar[];
}

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Set apart by its colour: the project's own, and the floors. */
  readonly kind: "ours" | "peer" | "floor";
}

const WIDTH = 760;
const LABEL_WIDTH = 170;
/** Room for the figure beside the longest bar. */
const FIGURE_WIDTH = 80;
const BAR_HEIGHT = 18;
const BAR_STEP = 22;
const GROUP_STEP = 34;
const TOP = 48;
const MARGIN = 16;
/** Readable on a white and on a dark page, and by people who do not tell red from green. */
const COLOURS = { ours: "#1f77d0", peer: "#b0722a", floor: "#8a8f98" } as const;

export function barChart({ title, unit, groups }: Chart): string {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const scale = (WIDTH - LABEL_WIDTH - FIGURE_WIDTH - 2 * MARGIN) / most;
  const lines: string[] = [];
  let y = TOP;
  for (const group of groups) {
    lines.push(text(MARGIN, y + 14, group.label, 'font-weight="600"'));
    y += GROUP_STEP - BAR_STEP / 2;
    for (const bar of group.bars) {
      lines.push(...barLines(bar, y, Math.max(1, bar.value * scale)));
      y += BAR_STEP;
    }
    y += GROUP_STEP - BAR_STEP;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="${escape(title)}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${y}" rx="6" fill="#ffffff"/>`,
    text(MARGIN, 28, `${title} (${unit})`, 'font-size="16" font-weight="600"'),
    ...lines,
    "</svg>",
    "",
  ].join("\n");
}

function barLines({ label, value, kind }: Bar, y: number, width: number): string[] {
  const baseline = y + BAR_HEIGHT - 5;
  const x = MARGIN + LABEL_WIDTH;
  return [
    text(x - 8, baseline, label, 'text-anchor="end"'),
    `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="2" fill="${COLOURS[kind]}"/>`,
    text(x + width + 6, baseline, number(value), ""),
  ];
}

function text(x: number, y: number, content: string, more: string): string {
  return `<text x="${x.toFixed(1)}" y="${y}" fill="#24292f" ${more}>${escape(content)}</text>`;
}

function escape(content: string): string {
  return content
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
