import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { max } from 'd3-array';
import type { Figure, Line } from '../support/bench.ts';
import type { Machine } from '../support/machine.ts';

const IMAGES = fileURLToPath(new URL('../../docs/images/', import.meta.url));

export interface Results {
  readonly machine: Machine;
  readonly lines: readonly Line[];
}

/** Draws the results of a JSON file as docs/images/peers.svg. @returns its path */
export const drawPicture = (json: string): string => {
  mkdirSync(IMAGES, { recursive: true });
  const file = `${IMAGES}peers.svg`;
  writeFileSync(file, pictureOf(JSON.parse(readFileSync(json, 'utf8')) as Results));
  return file;
};

const WIDTH = 860;
const MARGIN = 20;
const TOP = 74;
/** Of one line: its title, and two bars. */
const STEP = 62;
const BAR = 13;
const LONGEST = 380;
/** The ratios' right edge. */
const RATIO_X = WIDTH - MARGIN;

/** Follows the reader's colour scheme; needs no script and no font of its own. */
const STYLE = `
  svg { font: 13px system-ui, sans-serif; --paper: #fff; --ink: #1f2328; --faint: #59636e; --ours: #0969da; --peer: #afb8c1; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #f0f6fc; --faint: #9198a1; --ours: #4493f8; --peer: #656c76; }
  }
  .paper { fill: var(--paper); } text { fill: var(--ink); } .faint { fill: var(--faint); }
  .ours { fill: var(--ours); } .peer { fill: var(--peer); }
  .title { font-size: 17px; font-weight: 600; } .row { font-weight: 600; } .ratio { font-size: 16px; font-weight: 600; text-anchor: end; }
  .note { font-size: 12px; text-anchor: end; }`;

/** Returns the table as an SVG image: for each line our bar and the peer's, their figures, and how many times better ours is. */
export const pictureOf = ({ machine, lines }: Results): string => {
  const height = TOP + lines.length * STEP + MARGIN;
  const title = 'Doorplate beside what people would build instead';
  const measured = `Measured on ${machine.date.slice(0, 10)}, ${machine.cores} cores (${machine.cpu}), Node ${machine.node}, PostgreSQL ${machine.postgresql}; all sides on the same machine, one after the other`;
  const description = lines
    .map((line) => `${line.row}: ${figureOf(line.a)} to ${figureOf(line.b)}`)
    .join('; ');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title description">
<title id="title">${escaped(title)}</title>
<desc id="description">${escaped(`${measured}. ${description}.`)}</desc>
<style>${STYLE}</style>
<rect class="paper" width="${WIDTH}" height="${height}" rx="6"/>
<text class="title" x="${MARGIN}" y="32">${escaped(title)}</text>
<text class="faint" x="${MARGIN}" y="54" font-size="11.5">${escaped(measured)}</text>
${lines.map((line, nth) => drawLine(line, TOP + nth * STEP)).join('\n')}
</svg>
`;
};

const drawLine = (line: Line, top: number): string => {
  const scale = LONGEST / (max([line.a.value, line.b.value]) || 1);
  const bar = (figure: Figure, side: 'ours' | 'peer', y: number): string => {
    const width = Math.max(1, figure.value * scale);
    const label = side === 'ours' ? 'Doorplate' : figure.of;
    return `<rect class="${side}" x="${MARGIN}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>
<text x="${(MARGIN + width + 8).toFixed(1)}" y="${y + 11}">${escaped(figureOf(figure))} <tspan class="faint">${escaped(label)}</tspan></text>`;
  };
  return `<g>
<text class="row" x="${MARGIN}" y="${top + 12}">${escaped(line.row)} <tspan class="faint" font-weight="400">${isRate(line) ? '' : '(less is better)'}</tspan></text>
${bar(line.a, 'ours', top + 19)}
${bar(line.b, 'peer', top + 35)}
<text class="ratio" x="${RATIO_X}" y="${top + 32}">${timesBetter(line)}</text>
<text class="faint note" x="${RATIO_X}" y="${top + 48}">${targetOf(line)}</text>
</g>`;
};

/** Of costs and times, which every other unit is of, less is better. */
const isRate = ({ a: { unit } }: Line): boolean => unit.endsWith('/s');

const timesBetter = (line: Line): string => {
  const times = isRate(line) ? line.ratio : 1 / line.ratio;
  return `${times >= 10 ? times.toFixed(0) : times.toFixed(times >= 1 ? 1 : 2)} ×`;
};

const targetOf = ({ target }: Line): string => {
  if (target === null) return '';
  return 'atLeast' in target ? `aim: ≥ ${target.atLeast} ×` : `aim: ≤ ${target.atMost} ×`;
};

const figureOf = ({ value, unit }: Figure): string =>
  `${value.toLocaleString('en', { maximumSignificantDigits: value >= 1_000 ? 4 : 3 })}${unit}`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
