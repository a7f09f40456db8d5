/**
 * Charts drawn on the server. Each point of time has a slot of the same width, whether it has figures or not. Positions on the x axis
 * are percentages and on the y axis pixels, so that a chart fills any width while its text keeps the page's size. `browser/app.js`
 * adds the card that shows the figures of a slot on hover and focus.
 */

import { max, nice, ticks } from 'd3-array';
import { count, type Html, html, table } from './components.ts';

interface Series {
  readonly name: string;
  /** Names its colour; without it the series is coloured by its index. */
  readonly tone?: 'good' | 'bad' | 'wait' | 'off';
}

interface Point {
  /** Names the point in the card and in the table: `21 Nov`, `28 Nov, 14:00`. */
  readonly label: string;
  /** Below the axis; default: the label. */
  readonly tick?: string;
  /** A figure for each series; null: nothing was measured, which is not zero. */
  readonly values: readonly (number | null)[];
}

interface Chart {
  readonly title: string;
  /** At most four: each has its colour. */
  readonly series: readonly Series[];
  readonly points: readonly Point[];
  /** What the first column of the figures is called. */
  readonly axis: string;
  /** On top of each other (the default), or each from the base. */
  readonly isStacked?: boolean;
  /** A figure in words; by default with separators. */
  readonly format?: (value: number) => string;
  /** Where the axis ends; default: the round figure at or above the highest one. */
  readonly highest?: number;
}

const HEIGHT = 200;
const BOTTOM = 24;
const TOP = 8;
const BASE = HEIGHT - BOTTOM;
const MAX_LABELS = 7;

const percent = (share: number): string => `${(share * 100).toFixed(2)}%`;

/** Bars, with grid lines, a legend, and the figures in a table. */
export function barChart(chart: Chart): Html {
  const { points, series, isStacked = true } = chart;
  const slot = 1 / points.length;
  return drawn(chart, isStacked, (y) =>
    points.map(({ values }, index) => {
      let base = 0;
      return values.map((value, nth) => {
        const width = isStacked ? slot * 0.7 : (slot * 0.7) / series.length;
        const x = index * slot + slot * 0.15 + (isStacked ? 0 : nth * width);
        const top = y(base + (value ?? 0));
        const height = y(base) - top;
        if (isStacked) base += value ?? 0;
        return html`<rect class="${toneOf(series, nth)}" x="${percent(x)}" y="${top.toFixed(1)}" width="${percent(width)}" height="${height.toFixed(1)}"/>`;
      });
    }),
  );
}

/** Lines from point to point, above a tinted area. A line ends where nothing was measured. */
export function lineChart(chart: Chart): Html {
  const { points, series } = chart;
  const slot = 1 / points.length;
  return drawn(
    chart,
    false,
    (y) =>
      points.map(({ values }, index) =>
        values.map((value, nth) => {
          if (value === null) return null;
          const isAlone = [index - 1, index + 1].every(
            (other) => (points[other]?.values[nth] ?? null) === null,
          );
          return html`<circle class="${toneOf(series, nth)}${isAlone && ' alone'}" cx="${percent((index + 0.5) * slot)}" cy="${y(value).toFixed(1)}" r="4"/>`;
        }),
      ),
    (y) => series.map((_, nth) => linesOf(points, nth, y).map((line) => paths(line, toneOf(series, nth)))),
  );
}

type Place = readonly [x: number, y: number];

/** The parts of a line that are measured without a gap, of two points or more. */
function linesOf(points: readonly Point[], nth: number, y: (value: number) => number): readonly Place[][] {
  const lines: Place[][] = [[]];
  for (const [index, { values }] of points.entries()) {
    const value = values[nth] ?? null;
    if (value === null) lines.push([]);
    else lines.at(-1)?.push([index + 0.5, y(value)]);
  }
  return lines.filter(({ length }) => length > 1);
}

function paths(line: readonly Place[], tone: string): Html {
  const way = line.map(([x, y]) => `${x} ${y.toFixed(1)}`).join('L');
  return html`<path class="under ${tone}" d="M${line[0]?.[0]} ${BASE}L${way}L${line.at(-1)?.[0]} ${BASE}"/><path class="stroke ${tone}" d="M${way}"/>`;
}

const toneOf = (series: readonly Series[], nth: number): string => `series-${series[nth]?.tone ?? nth}`;

/** @param lines is drawn behind the marks, with slots as the unit of x */
function drawn(
  chart: Chart,
  isStacked: boolean,
  marks: (y: (value: number) => number) => readonly (readonly (Html | null)[])[],
  lines?: (y: (value: number) => number) => readonly (readonly Html[])[],
): Html {
  const { title, series, points, axis, format = count } = chart;
  if (points.length === 0) return html``;
  const most = max(points, ({ values }) =>
    isStacked ? values.reduce<number>((total, value) => total + (value ?? 0), 0) : max(values, Number),
  );
  // At least four, because counts have no halves.
  const highest = chart.highest ?? nice(0, Math.max(most ?? 0, 4), 4)[1];
  const steps = ticks(0, highest, 4);
  const y = (value: number): number => BASE - (value / highest) * (BASE - TOP);
  const every = Math.ceil(points.length / MAX_LABELS);
  const inWords = (value: number | null): string => (value === null ? '–' : format(value));
  return html`<figure class="chart">
    <figcaption>${title}${
      series.length > 1 &&
      html`<span class="legend">${series.map(({ name }, nth) => html`<span class="key ${toneOf(series, nth)}">${name}</span>`)}</span>`
    }</figcaption>
    <div class="plot"><svg class="scale" height="${HEIGHT}" aria-hidden="true">${steps.map(
      (step) => html`<text x="100%" y="${(y(step) + 4).toFixed(1)}" text-anchor="end">${format(step)}</text>`,
    )}</svg><svg class="slots" height="${HEIGHT}" role="img" aria-label="${title}, ${points[0]?.label} to ${points.at(-1)?.label}. The figures are in the table below.">
      ${steps.map(
        (step) =>
          html`<line class="grid" x1="0" x2="100%" y1="${y(step).toFixed(1)}" y2="${y(step).toFixed(1)}"/>`,
      )}
      ${lines && html`<svg viewBox="0 0 ${points.length} ${HEIGHT}" preserveAspectRatio="none" width="100%" height="${HEIGHT}">${lines(y)}</svg>`}
      ${marks(y).map((some, index) => {
        const { label = '', values = [] } = points[index] ?? {};
        return html`<g><rect class="slot" x="${percent(index / points.length)}" y="0" width="${percent(1 / points.length)}" height="${BASE}"/>${some}<title>${label}: ${series
          .map(({ name }, nth) => `${name} ${inWords(values[nth] ?? null)}`)
          .join(', ')}</title></g>`;
      })}
      ${points.map(
        ({ label, tick = label }, index) =>
          index % every === 0 &&
          html`<text x="${percent((index + 0.5) / points.length)}" y="${HEIGHT - 4}" text-anchor="middle">${tick}</text>`,
      )}
    </svg></div>
    <details class="figures"><summary>Show the figures</summary>${table(
      title,
      [axis, ...series.map(({ name }) => name)],
      points.map(({ label, values }) => [label, ...values.map(inWords)]),
      { numeric: series.map((_, nth) => nth + 1) },
    )}</details>
  </figure>`;
}

/** A line of small bars without an axis, the newest at the right. `text`: what it shows, for who cannot see it. */
export function sparkline(values: readonly number[], text: string): Html {
  const most = Math.max(...values, 1);
  return html`<svg class="spark" role="img" aria-label="${text}: ${values.join(', ')}" viewBox="0 0 ${values.length * 8} 20">${values.map(
    (value, nth) => {
      const height = value === 0 ? 1 : Math.max(2, Math.round((value / most) * 20));
      return html`<rect x="${nth * 8}" y="${20 - height}" width="6" height="${height}" rx="1"/>`;
    },
  )}</svg>`;
}

const shortDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** `2026-11-21` as `21 Nov`. */
export const dayLabel = (day: string): string => shortDay.format(Date.parse(day));
