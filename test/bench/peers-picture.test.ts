import { describe, expect, it } from 'vitest';
import { pictureOf, type Results } from '../../bench/peers/picture.ts';

const machine: Results['machine'] = {
  date: '2026-11-28T05:00:00.000Z',
  cores: 2,
  cpu: 'AMD EPYC',
  memory_gib: 8,
  kernel: 'Linux',
  node: '24.21.0',
  postgresql: '18.4',
  store: 'postgresql',
};
const appends: Results['lines'][number] = {
  row: 'appends to Emmett',
  ratio: 4,
  target: { atLeast: 3 },
  a: { of: 'appends', value: 4_000, unit: '/s' },
  b: { of: 'emmett <1>', value: 1_000, unit: '/s' },
  notes: [],
};
const cpu: Results['lines'][number] = {
  row: 'CPU of a visit, to Umami',
  ratio: 0.1,
  target: null,
  a: { of: 'CPU a visit', value: 100, unit: ' µs' },
  b: { of: 'Umami', value: 1_000, unit: ' µs' },
  notes: [],
};
const picture = pictureOf({ machine, lines: [appends, cpu] });

describe('the picture of the peers', () => {
  it('names the machine, the date and both figures of each line', () => {
    for (const text of ['2026-11-28', '2 cores (AMD EPYC)', '4,000/s', '1,000/s', '100 µs', '1,000 µs'])
      expect(picture).toContain(text);
  });

  it('draws the bars of a line to one scale', () => {
    const widths = [...picture.matchAll(/class="(?:ours|peer)" .*? width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths).toEqual([380, 95, 38, 380]);
  });

  it('says how many times better a line is, also where less is better', () => {
    const ratios = [...picture.matchAll(/class="ratio".*?>(.*?)</g)].map(([, ratio]) => ratio);
    expect(ratios).toEqual(['4.0 ×', '10 ×']);
    expect(picture.match(/less is better/g)).toHaveLength(1);
    expect(picture).toContain('aim: ≥ 3 ×');
  });

  it('escapes names', () => {
    expect(picture).toContain('emmett &lt;1&gt;');
    expect(picture).not.toContain('emmett <1>');
  });

  it('has a text for those who do not see it', () => {
    expect(picture).toMatch(/<desc id="description">.*appends to Emmett: 4,000\/s to 1,000\/s/);
  });
});
