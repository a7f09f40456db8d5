import { describe, expect, it } from 'vitest';
import { HOUR } from '../../domain/kernel/time.ts';
import type { PageContext } from '../../web/dashboard/api.ts';
import { barChart, lineChart } from '../../web/dashboard/charts.ts';
import { attemptCharts, startOf } from '../../web/dashboard/pages/webhook-health.ts';

const NOW = Date.parse('2026-11-29T13:30:00.000Z');
const page = { user: { time_zone: 'UTC' }, request: { receivedAt: NOW } } as PageContext;

const attemptsOf = (hour: string, attempts: number, delivered: number) => ({
  ...{ hour: `2026-11-29T${hour}:00.000Z`, attempts, delivered },
  ...{ answered: attempts, answered_ms: attempts * 100 },
});

/** The figures in the table of the chart with this title. */
function figuresOf(markup: string, title: string): string[][] {
  const [, chart = ''] = markup.split(`<figcaption>${title}`);
  const [table = ''] = chart.split('</table>');
  return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)]
    .map(([, row = '']) => [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) => cell.trim()))
    .filter((cells) => cells.length > 0);
}

/** What the axis of a chart is labelled with, from the base up. */
const scaleOf = (markup: string): string[] =>
  [...(/<svg class="scale".*?<\/svg>/s.exec(markup)?.[0] ?? '').matchAll(/<text[^>]*>(.*?)<\/text>/gs)].map(
    ([, text = '']) => text,
  );

const topsOf = (markup: string, mark: RegExp): number[] =>
  [...markup.matchAll(mark)].map(([, y]) => Number(y));

describe('the charts of an endpoint', () => {
  const markup = attemptCharts(page, 'day', [
    attemptsOf('01:00', 10, 7),
    attemptsOf('12:00', 4, 4),
  ]).toString();

  it('have each hour of a day in its place, those without an attempt as gaps', () => {
    const figures = figuresOf(markup, 'Success rate');
    expect(figures).toHaveLength(24);
    expect(figures[0]?.[0]).toBe('14:00');
    expect(figures.at(-1)?.[0]).toBe('13:00');
    expect(figures.filter(([, rate]) => rate !== '–')).toEqual([
      ['01:00', '70 %'],
      ['12:00', '100 %'],
    ]);
    // No line leads from one to the other.
    expect(markup).not.toMatch(/ d="[^"]*L/);
    expect(figuresOf(markup, 'Response time')).toHaveLength(24);
  });

  it('have each step of a week in its place', () => {
    const week = attemptCharts(page, 'week', [attemptsOf('01:00', 10, 7)]).toString();
    expect(figuresOf(week, 'Success rate')).toHaveLength(28);
  });

  it('begin with the first whole hour of the last 24', () => {
    expect(new Date(startOf('day', NOW)).toISOString()).toBe('2026-11-28T14:00:00.000Z');
    expect(NOW - startOf('day', NOW)).toBeLessThan(24 * HOUR);
  });

  it('measure a rate from 0 to 100 %, however low it is', () => {
    const low = attemptCharts(page, 'day', [attemptsOf('01:00', 10, 7)]).toString();
    expect([scaleOf(low)[0], scaleOf(low).at(-1)]).toEqual(['0 %', '100 %']);
  });
});

describe('the axis of figures', () => {
  const chart = (most: number, isStacked: boolean) => ({
    title: 'Visits',
    axis: 'Day',
    isStacked,
    series: [{ name: 'a' }, { name: 'b' }],
    points: [
      { label: '1 Nov', values: [most, 1] },
      { label: '2 Nov', values: [0, 0] },
    ],
  });

  it.each([
    [170, '200'],
    [733, '800'],
    [1, '4'],
    [101, '120'],
  ])('ends at a round figure above %d', (most, top) => {
    for (const markup of [barChart(chart(most, false)), lineChart(chart(most, false))])
      expect(scaleOf(markup.toString()).at(-1)).toBe(top);
  });

  it.each([true, false])('has no bar above its top line, stacked: %s', (isStacked) => {
    for (const most of [170, 199, 733, 999, 1_001]) {
      const markup = barChart(chart(most, isStacked)).toString();
      const topLine = Math.min(...topsOf(markup, /<line class="grid"[^>]*y1="([\d.]+)"/g));
      const tops = topsOf(markup, /<rect class="series-\d"[^>]* y="([\d.]+)"/g);
      expect(tops.length).toBeGreaterThan(1);
      expect(Math.min(...tops), String(most)).toBeGreaterThanOrEqual(topLine);
    }
  });
});
