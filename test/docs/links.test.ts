import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const pages = ['*.md', 'docs/**/*.md', 'clients/*/*.md', 'web/*/*.md']
  .flatMap((pattern) => globSync(pattern, { cwd: root }))
  .sort();

/** The anchors of a page: of its headings as code hosts make them, and those that it sets itself. */
const anchorsOf = (page: string): Set<string> => {
  const text = read(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  const headings = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set([...headings, ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)]);
};

describe('the documentation', () => {
  it.each(pages)('%s links to files and anchors that exist', (page) => {
    const links = [...read(page).matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    const broken = links.filter(([, path = '', anchor]) => {
      const target = path === '' ? page : normalize(join(dirname(page), path));
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it('has the pages and headings that programs, files and their messages name', () => {
    const files = globSync(
      '{.,deploy/**,{bin,cli,commands,domain,http,operations,platform,processors,projections}/**,clients/*/*}/*.{ts,yml,cfg,md}',
      {
        cwd: root,
        exclude: (name) => name.includes('node_modules'),
      },
    );
    const named = files.flatMap((file) =>
      [...read(file).matchAll(/(docs\/[\w/-]+\.(?:md|mjs))(?:, "?([A-Z][^)\n"`]*))?/g)].map(
        ([text, page = '', heading]) => ({ file, text, page, heading }),
      ),
    );
    expect(named.length).toBeGreaterThan(30);
    const broken = named.filter(({ page, heading }) => {
      if (!existsSync(join(root, page))) return true;
      const headings = [...read(page).matchAll(/^#{2,4} (.+)$/gm)].map(([, name = '']) => name);
      return (
        heading !== undefined && !headings.some((name) => heading.startsWith(name.split(':')[0] ?? name))
      );
    });
    expect(broken.map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
  });

  it('keeps table cells to 200 characters', () => {
    const written = pages.filter((page) => !page.startsWith('docs/reference/'));
    const cells = written.flatMap((page) =>
      read(page)
        .split('\n')
        .filter((line) => line.startsWith('|'))
        .flatMap((line) => line.split(/(?<!\\)\|/).slice(1, -1))
        .filter((cell) => cell.trim().length > 200)
        .map((cell) => `${page}: ${cell.trim().slice(0, 60)}`),
    );
    expect(cells).toEqual([]);
  });
});
