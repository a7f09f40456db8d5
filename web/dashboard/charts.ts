import { count, type Html, html, table } from './components.ts';

const DAY = 86_400_000;

/** The last UTC days up to the one of `now`, oldest first, as `YYYY-MM-DD`. */
export const daysBack = (now: number, days: number): string[] =>
  Array.from({ length: days }, (_, index) =>
    new Date(now - (days - 1 - index) * DAY).toISOString().slice(0, 10),
  );

interface Chart {
  readonly title: string;
  /** At most three: each has its colour. */
  readonly series: readonly string[];
  readonly days: readonly { readonly day: string; readonly values: readonly number[] }[];
}

const WIDTH = 720;
const HEIGHT = 180;
const BOTTOM = 20;

/** Bars by day, drawn on the server; a table below repeats the figures. */
export function barChart({ title, series, days }: Chart): Html {
  const most = Math.max(1, ...days.flatMap(({ values }) => values));
  const slot = WIDTH / days.length;
  const bar = (slot * 0.8) / series.length;
  const bars = days.flatMap(({ values }, index) =>
    values.map((value, of) => {
      const height = (value / most) * (HEIGHT - BOTTOM);
      return html`<rect class="series-${of}" x="${(index * slot + slot * 0.1 + of * bar).toFixed(1)}"
        y="${(HEIGHT - BOTTOM - height).toFixed(1)}" width="${bar.toFixed(1)}" height="${height.toFixed(1)}"/>`;
    }),
  );
  const first = days[0]?.day ?? '';
  const last = days.at(-1)?.day ?? '';
  return html`<figure class="chart" aria-label="${title}">
    <figcaption>${title} <span class="legend">${series.map(
      (name, of) => html`<span class="key series-${of}">${name}</span>`,
    )}</span></figcaption>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}, ${first} to ${last}; the figures are in the table below">
      <line class="axis" x1="0" x2="${WIDTH}" y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM}"/>
      ${bars}
      <text x="0" y="${HEIGHT - 4}">${first}</text>
      <text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">${last}</text>
      <text x="0" y="12">${count(most)}</text>
    </svg>
    <details><summary>The figures</summary>${table(
      title,
      ['Day', ...series],
      days.map(({ day, values }) => [day, ...values.map(count)]),
    )}</details>
  </figure>`;
}
