/**
 * Charts drawn on the server. Positions on the x axis are percentages and on the y axis pixels, so that a chart fills any width while
 * its text keeps the page's size.
 */

import { max, ticks } from 'd3-array';
import { count, type Html, html, table } from './components.ts';

interface Series {
  readonly name: string;
  /** Names its colour; without it the series is coloured by its index. */
  readonly tone?: 'good' | 'bad' | 'wait' | 'off';
}

interface Chart {
  readonly title: string;
  /** At most four: each has its colour. */
  readonly series: readonly Series[];
  /** `label` names the point below the axis and in the table: `21 Nov`, `14:00`. */
  readonly points: readonly { readonly label: string; readonly values: readonly number[] }[];
  /** What the first column of the figures is called. */
  readonly axis: string;
  /** On top of each other (the default), or each from the base. */
  readonly isStacked?: boolean;
  /** A figure in words; by default with separators. */
  readonly format?: (value: number) => string;
}

const HEIGHT = 180;
const BOTTOM = 22;
const TOP = 8;
const MAX_LABELS = 6;

const percent = (share: number): string => `${(share * 100).toFixed(3)}%`;

/** Bars, with grid lines, a legend, and the figures in a table. */
export function barChart(chart: Chart): Html {
  const { points, series, isStacked = true } = chart;
  return drawn(chart, isStacked, (y, bottom) => {
    const slot = 1 / points.length;
    return points.map(({ label, values }, index) => {
      let base = 0;
      const bars = values.map((value, nth) => {
        const width = isStacked ? slot * 0.7 : (slot * 0.7) / series.length;
        const x = index * slot + slot * 0.15 + (isStacked ? 0 : nth * width);
        const top = y(base + value);
        const height = (isStacked ? y(base) : bottom) - top;
        if (isStacked) base += value;
        return html`<rect class="${toneOf(series, nth)}" x="${percent(x)}" y="${top.toFixed(1)}"
          width="${percent(width)}" height="${height.toFixed(1)}"/>`;
      });
      return html`<g><rect class="slot" x="${percent(index * slot)}" y="0" width="${percent(slot)}" height="${bottom}"/>
        ${bars}<title>${spoken(chart, label, values)}</title></g>`;
    });
  });
}

/** Lines from point to point. */
export function lineChart(chart: Chart): Html {
  const { points, series } = chart;
  return drawn(chart, false, (y, bottom) => {
    const slot = 1 / points.length;
    const x = (index: number): string => percent((index + 0.5) * slot);
    return points.map(({ label, values }, index) => {
      const next = points[index + 1];
      return html`<g><rect class="slot" x="${percent(index * slot)}" y="0" width="${percent(slot)}" height="${bottom}"/>
        ${values.map(
          (value, nth) =>
            html`${
              next !== undefined &&
              html`<line class="stroke ${toneOf(series, nth)}" x1="${x(index)}" y1="${y(value).toFixed(1)}"
              x2="${x(index + 1)}" y2="${y(next.values[nth] ?? 0).toFixed(1)}"/>`
            }<circle class="${toneOf(series, nth)}" cx="${x(index)}" cy="${y(value).toFixed(1)}" r="2.5"/>`,
        )}<title>${spoken(chart, label, values)}</title></g>`;
    });
  });
}

const toneOf = (series: readonly Series[], nth: number): string => `series-${series[nth]?.tone ?? nth}`;

const spoken = ({ series, format = count }: Chart, label: string, values: readonly number[]): string =>
  `${label}: ${series.map(({ name }, nth) => `${name} ${format(values[nth] ?? 0)}`).join(', ')}`;

function drawn(
  chart: Chart,
  isStacked: boolean,
  draw: (y: (value: number) => number, bottom: number) => readonly Html[],
): Html {
  const { title, series, points, axis, format = count } = chart;
  const most = max(points, ({ values }) =>
    isStacked ? values.reduce((total, value) => total + value, 0) : max(values),
  );
  const steps = ticks(0, Math.max(most ?? 0, 4), 4);
  const highest = Math.max(most ?? 0, steps.at(-1) ?? 0);
  const bottom = HEIGHT - BOTTOM;
  const y = (value: number): number => bottom - (value / highest) * (bottom - TOP);
  const every = Math.ceil(points.length / MAX_LABELS);
  return html`<figure class="chart">
    <figcaption>${title}<span class="legend">${series.map(
      ({ name }, nth) => html`<span class="key ${toneOf(series, nth)}">${name}</span>`,
    )}</span></figcaption>
    <div class="plot"><svg class="scale" height="${HEIGHT}" aria-hidden="true">${steps.map(
      (step) => html`<text x="100%" y="${(y(step) + 4).toFixed(1)}" text-anchor="end">${format(step)}</text>`,
    )}</svg><svg height="${HEIGHT}" role="img" aria-label="${title}, ${points[0]?.label} to ${points.at(-1)?.label}. The figures are in the table below.">
      ${steps.map(
        (step) =>
          html`<line class="grid" x1="0" x2="100%" y1="${y(step).toFixed(1)}" y2="${y(step).toFixed(1)}"/>`,
      )}
      ${draw(y, bottom)}
      ${points.map(
        ({ label }, index) =>
          index % every === 0 &&
          html`<text x="${percent((index + 0.5) / points.length)}" y="${HEIGHT - 4}" text-anchor="middle">${label}</text>`,
      )}
    </svg></div>
    <details><summary>Show the figures</summary>${table(
      title,
      [axis, ...series.map(({ name }) => name)],
      points.map(({ label, values }) => [label, ...values.map(format)]),
      { numeric: series.map((_, nth) => nth + 1) },
    )}</details>
  </figure>`;
}

const shortDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** `2026-11-21` as `21 Nov`. */
export const dayLabel = (day: string): string => shortDay.format(Date.parse(day));
