import { describe, expect, it } from 'vitest';
import { isOrigin } from '../../domain/trackers/trackers.ts';
import { originsMeant, respelled } from '../../web/dashboard/origins.ts';

describe('what a line of a tracker’s form means', () => {
  it.each([
    ['https://www.example.com', ['https://www.example.com']],
    ['example.com', ['https://example.com', 'https://www.example.com']],
    ['www.example.com', ['https://www.example.com']],
    ['https://www.example.com/', ['https://www.example.com']],
    ['https://www.Example.com/shop?a=1#b', ['https://www.example.com']],
    ['http://www.example.com', ['https://www.example.com']],
    ['https://www.example.com:8443/', ['https://www.example.com:8443']],
    ['bücher.example', ['https://xn--bcher-kva.example', 'https://www.xn--bcher-kva.example']],
    ['*.example.com', ['https://*.example.com']],
    ['https://*.example.com/', ['https://*.example.com']],
    ['http://localhost:8088/', ['http://localhost:8088']],
    ['localhost:3000', ['http://localhost:3000']],
    ['https://localhost:3000', ['https://localhost:3000']],
    ['127.0.0.1:8080/index.html', ['http://127.0.0.1:8080']],
  ])('%s', (line, meant) => {
    expect(originsMeant(line)).toEqual(meant);
    expect(meant.every(isOrigin)).toBe(true);
  });

  it.each(['website', 'ftp://example.com', 'https://', '*', ''])('%s is no website', (line) => {
    expect(originsMeant(line)).toEqual([]);
  });

  it('names the lines that are no origins as they stand', () => {
    expect(respelled(['https://a.example', 'b.example/x', 'c'])).toEqual([
      ['b.example/x', ['https://b.example']],
      ['c', []],
    ]);
  });
});
