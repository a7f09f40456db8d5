import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openReloadingFile } from '../../processors/lookup/providers/data-file.ts';
import { until } from '../support/until.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  folder = await mkdtemp(join(tmpdir(), 'doorplate-reloading-'));
  file = join(folder, 'a-file');
  await writeFile(file, 'one');
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(folder, { recursive: true });
});

/** @param parsed called with each content that is read */
const open = async (parsed: (text: string) => unknown = () => undefined) => {
  const outcomes: string[] = [];
  const reloading = await openReloadingFile({
    file,
    parse: async (content) => {
      await parsed(String(content));
      return String(content);
    },
    log: pino({ level: 'silent' }),
    provider: 'a provider',
    variable: 'A_FILE',
    onReload: (outcome) => outcomes.push(outcome),
  });
  /** Checks the file once. */
  const check = async (): Promise<void> => {
    vi.advanceTimersToNextTimer();
    // Those of the file came before.
    for (let nth = 0; nth < 5; nth += 1) await stat(file);
  };
  const isRead = async (text: string): Promise<boolean> => {
    await check();
    return reloading.current() === text;
  };
  return { ...reloading, outcomes, check, isRead };
};

it('a file that is written in place is read once it no longer changes', async () => {
  const read: string[] = [];
  const { check, isRead, close } = await open((text) => read.push(text));
  for (const part of ['', 't', 'tw', 'two']) {
    await writeFile(file, part);
    await check();
  }
  await until('the whole file is read', () => isRead('two'));
  close();
  expect(read).toEqual(['one', 'two']);
});

it('what was read of a file that has changed meanwhile is not used', async () => {
  const { outcomes, isRead, close } = await open(async (text) => {
    if (text === 'two') await writeFile(file, 'three');
  });
  await writeFile(file, 'two');
  await until('the last content is read', () => isRead('three'));
  close();
  expect(outcomes).toEqual(['reloaded']);
});

it('a file that cannot be read leaves the last content in use, and is tried once', async () => {
  const { outcomes, check, isRead, current, close } = await open((text) => {
    if (text === 'damaged') throw new Error('damaged');
  });
  await writeFile(file, 'damaged');
  await until('it is tried', async () => {
    await check();
    return outcomes.length > 0;
  });
  for (let nth = 0; nth < 3; nth += 1) await check();
  expect(current()).toBe('one');
  await writeFile(file, 'two');
  await until('the next content is read', () => isRead('two'));
  close();
  expect(outcomes).toEqual(['failed', 'reloaded']);
});
