/** Chromium and Firefox, driven in the same way as a person: by labels, buttons and links. */
import { existsSync } from 'node:fs';
import puppeteer, { type Browser, type ElementHandle, type Page } from 'puppeteer-core';
import { describe } from 'vitest';

const PROGRAMS = {
  chromium: [
    process.env.CHROMIUM ?? '',
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
  ],
  firefox: [process.env.FIREFOX ?? '', '/usr/bin/firefox-esr', '/usr/bin/firefox'],
} as const;
export type Engine = keyof typeof PROGRAMS;

const programOf = (engine: Engine): string | undefined => PROGRAMS[engine].find((path) => existsSync(path));

/** A `describe` that skips its tests by name where the engine is not installed. */
export const describeIn = (engine: Engine) => describe.skipIf(programOf(engine) === undefined);

/** Starts the engine without a window. `preferences`: Firefox's, by their names in `about:config`. */
export async function startEngine(
  engine: Engine,
  preferences: Readonly<Record<string, unknown>> = {},
): Promise<Browser> {
  const executablePath = programOf(engine);
  if (executablePath === undefined) throw new Error(`there is no ${engine} here`);
  return puppeteer.launch({
    browser: engine === 'firefox' ? 'firefox' : 'chrome',
    executablePath,
    headless: true,
    defaultViewport: { width: 1280, height: 800 },
    protocol: 'webDriverBiDi',
    args: engine === 'chromium' ? ['--no-sandbox'] : [],
    extraPrefsFirefox: preferences,
  });
}

/** What of an element is used in the page, whose types this project does not load. */
interface Field {
  value: string;
  readonly tagName: string;
  readonly textContent: string | null;
  readonly options?: Iterable<{ readonly text: string; readonly value: string }>;
}

const WAIT_MS = 15_000;

/** A quoted string of XPath 1.0, which has no escapes. */
const quoted = (text: string): string =>
  `concat(${text
    .split('"')
    .map((part) => `"${part}"`)
    .join(`, '"', `)}, "")`;

const says = (text: string): string => `normalize-space(.)=${quoted(text)}`;

/** A person at a page of the dashboard; it counts the clicks and pages that a task takes. */
export interface Person {
  readonly page: Page;
  readonly effort: { clicks: number; pages: number };
  open(path: string): Promise<void>;
  /** Follows the link with exactly this text. */
  follow(text: string): Promise<void>;
  /** Presses the button with exactly this text and waits for the next page. */
  press(text: string): Promise<void>;
  /** Fills in fields by their labels; of a select by the text of the option. */
  fill(fields: Readonly<Record<string, string>>): Promise<void>;
  /** Ticks the boxes with this name, the first of them. */
  tick(name: string, count: number): Promise<void>;
  /** The text of the main part. */
  text(): Promise<string>;
  /** The text that can be copied under this label. */
  copyable(label: string): Promise<string>;
  title(): Promise<string>;
}

/** `base`: the address that paths are relative to. */
export function personAt(page: Page, base: string): Person {
  const effort = { clicks: 0, pages: 0 };
  const find = async (xpath: string): Promise<ElementHandle> => {
    const found = await page.waitForSelector(`::-p-xpath(${xpath})`, { timeout: WAIT_MS }).catch(() => null);
    if (found === null) {
      throw new Error(`${page.url()} has no ${xpath}:\n${(await textOf(page)).slice(0, 2_000)}`);
    }
    return found;
  };
  const click = async (xpath: string): Promise<void> => {
    const target = await find(xpath);
    effort.clicks += 1;
    effort.pages += 1;
    await Promise.all([page.waitForNavigation({ timeout: WAIT_MS }), target.click()]);
  };
  return {
    page,
    effort,
    open: async (path) => {
      effort.pages += 1;
      await page.goto(base + path);
    },
    follow: (text) => click(`//a[${says(text)}]`),
    press: (text) => click(`//button[${says(text)}]`),
    fill: async (fields) => {
      for (const [label, value] of Object.entries(fields)) {
        const field = await find(`//*[@id=//label[${says(label)}]/@for]`);
        const tag = await field.evaluate((element) => (element as unknown as Field).tagName);
        if (tag === 'SELECT') {
          await field.select(
            await field.evaluate(
              (select, text) =>
                [...((select as unknown as Field).options ?? [])].find((option) => option.text === text)
                  ?.value ?? '',
              value,
            ),
          );
        } else {
          await field.evaluate((input, text) => {
            (input as unknown as Field).value = text;
          }, value);
        }
      }
    },
    tick: async (name, count) => {
      const boxes = await page.$$(`input[name="${name}"]`);
      for (const box of boxes.slice(0, count)) {
        effort.clicks += 1;
        await box.click();
      }
    },
    text: () => textOf(page),
    copyable: async (label) => {
      const box = await find(`//pre[@aria-label=${quoted(label)}]`);
      return box.evaluate((element) => (element as unknown as Field).textContent ?? '');
    },
    title: () => page.$eval('h1', (element) => (element as unknown as Field).textContent ?? ''),
  };
}

const textOf = (page: Page): Promise<string> =>
  page.$eval('main', (element) => (element as unknown as Field).textContent?.replace(/\s+/g, ' ') ?? '');
