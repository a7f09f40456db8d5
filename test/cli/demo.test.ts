import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DEMO_MARK } from '../../platform/config/data-folder.ts';
import { identify, isAlive } from '../../platform/embedded/processes.ts';
import { startDoorplate } from '../support/doorplate.ts';
import { reapProcess } from '../support/reaped.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

const FOLDER = '.doorplate-demo';

const runIn = async (cwd: string, ...args: string[]) => {
  const running = startDoorplate(['demo', ...args], {}, { cwd });
  return { code: await running.ended, stderr: running.stderr() };
};

/** Makes a folder like a demo's, with the mark of a process. */
const makeMarked = (parent: string, process: object): string => {
  const folder = join(parent, FOLDER);
  mkdirSync(folder);
  const mark = { folder: realpathSync(folder), process, dashboard: null };
  writeFileSync(join(folder, DEMO_MARK), JSON.stringify(mark));
  return folder;
};

const startSleeper = () => {
  const { pid = 0 } = spawn('sleep', ['60'], { stdio: 'ignore' });
  reapProcess(pid);
  const identity = identify(pid);
  if (identity === null) throw new Error('the process has not started');
  return identity;
};

it('demo --remove refuses where there is no demo', async () => {
  expect(await runIn(makeTestFolder(), '--remove')).toMatchObject({ code: 1 });
});

it('demo neither uses nor removes a folder without a mark', async () => {
  const parent = makeTestFolder();
  const file = join(parent, FOLDER, 'mine.txt');
  mkdirSync(join(parent, FOLDER));
  writeFileSync(file, 'mine');
  for (const args of [['--remove'], []]) {
    expect(await runIn(parent, ...args)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no mark'),
    });
    expect(existsSync(file)).toBe(true);
  }
});

it("demo --remove removes neither a copy of a demo's folder nor a link to it, and stops nothing for them", async () => {
  const [original, copy, linking] = [makeTestFolder(), makeTestFolder(), makeTestFolder()];
  const sleeper = startSleeper();
  const folder = makeMarked(original, sleeper);
  cpSync(folder, join(copy, FOLDER), { recursive: true });
  symlinkSync(folder, join(linking, FOLDER));
  for (const parent of [copy, linking]) {
    expect(await runIn(parent, '--remove')).toMatchObject({ code: 1 });
    expect(existsSync(join(parent, FOLDER, DEMO_MARK))).toBe(true);
  }
  expect(isAlive(sleeper)).toBe(true);
  process.kill(sleeper.pid);
});

it('demo --remove does not stop a later process that has the pid of the mark', async () => {
  const parent = makeTestFolder();
  const sleeper = startSleeper();
  const folder = makeMarked(parent, { ...sleeper, started: 'an earlier boot/1' });
  expect(await runIn(parent, '--remove')).toMatchObject({ code: 0 });
  expect(existsSync(folder)).toBe(false);
  expect(isAlive(sleeper)).toBe(true);
  process.kill(sleeper.pid);
});

it('demo --remove stops the process that wrote the mark', async () => {
  const parent = makeTestFolder();
  const sleeper = startSleeper();
  const folder = makeMarked(parent, sleeper);
  expect(await runIn(parent, '--remove')).toMatchObject({ code: 0 });
  expect(existsSync(folder)).toBe(false);
  expect(isAlive(sleeper)).toBe(false);
});
