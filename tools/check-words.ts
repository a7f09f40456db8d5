/**
 * Finds archaic and riddling words and phrases in code and docs; CONTRIBUTING.md has the rule. Part of `npm run check`.
 * Lines are checked one by one, without the frozen texts that callers, operators or dashboards already depend on.
 */
import { glob, readFile } from 'node:fs/promises';

/** Folders and files that are checked. Widen the list when another one is clean. */
const CHECKED = [
  'analytics',
  'bin',
  'cli',
  'commands',
  'docs',
  'domain',
  'event-store',
  'http',
  'platform',
  'processors',
  'projections',
  'queries',
  'read-api',
  'bench',
  'clients/python',
  'clients/typescript',
  'test',
  'tools',
  'write-api',
] as const;

/**
 * History, the API document with what is made from it, and the property names of recordings keep their words, and this file
 * names them.
 */
const EXEMPT =
  /(^|\/)(node_modules|dist)\/|^read-api\/.*(operations?|schemas)\.ts$|^clients\/typescript\/src\/generated\.ts$|^test\/(upgrade\/|support\/everything\.ts$)|^CHANGELOG\.md$|^docs\/adr\/|^docs\/data-dictionary\.md$|^tools\/check-words\.ts$/;

/** Parts of texts that must not change: command line output and help, metric help, a runbook's anchor, names in recordings. */
const FROZEN = [
  'whoever holds a complete receipt',
  'somebody reads the old tables',
  'by what became of them',
  'the log as it goes on',
  'what is written down, for operators',
  'Looks where custom domains point',
  'anew beside',
  'id="nobody-leads"',
  "name: 'nobody'",
  'attempted anew',
  'before.told',
] as const;

const WORDS = [
  /\banew\b/i,
  /\banybody\b/i,
  /\bbefalls?\b|\bbefell\b|\bbefallen\b/i,
  /\beverybody\b/i,
  /\bheard\b/i,
  /\blest\b/i,
  /\bnobody\b/i,
  /\bsomebody\b/i,
  /\bthereof\b|\bthereupon\b|\bwhereupon\b/i,
  /\btold\b/i,
  /\bwhoever\b|\bwhichever of\b/i,
] as const;

const PHRASES = [
  /\ba look at\b|\blooks? (?:again|at|where|whether)\b/i,
  /\bas ever\b/i,
  /\bat rest no\b/i,
  /\bbe (?:it|they) (?:a|an|the|of|in)\b/i,
  /\bby (?:their|its) age\b/i,
  /\bc[ao]mes? by\b/i,
  /\bcame (?:of|to nothing)\b|\bcomes? to nothing\b/i,
  /\bdies (?:before|between|in between)\b/i,
  /\bfor company\b/i,
  /\bfor so long\b|\bso many milliseconds\b/i,
  /\bgives? way to\b/i,
  /\bgo(?:es)? on (?:after|as|by|with|past)\b/i,
  /\bhas come (?:so far|to a)\b/i,
  /\bin (?:its|their) (?:place|stead)\b/i,
  /\bin the house\b|\bof the house\b/i,
  /\bit is tried again\b/i,
  /\bno more of (?:it|them)\b/i,
  /\bout of the way of\b/i,
  /\bsees? to it that\b/i,
  /\bslept over\b/i,
  /\bst(?:ands?|ood) still\b/i,
  /\btells? of\b|\btells? it\b/i,
  /\bthose (?:just|who)\b/i,
  /\bthough it be\b/i,
  /\bto nobody\b/i,
  /\bupon which\b/i,
  /\bwhat (?:is|are) (?:none|no)\b/i,
  /\bwhat (?:became|becomes|befell) of\b/i,
  /\bwho (?:asks|comes|dies|reads|waits)\b/i,
  /\bwrites? down\b|\bwritten down\b/i,
] as const;

const filesToCheck = async (): Promise<string[]> => {
  const patterns = CHECKED.map((part) => (/\.\w+$/.test(part) ? part : `${part}/**/*.{ts,md}`));
  const files: string[] = [];
  for await (const file of glob(patterns)) if (!EXEMPT.test(file)) files.push(file);
  return files.sort();
};

const withoutFrozen = (line: string): string =>
  FROZEN.reduce((text, part) => text.replaceAll(part, ''), line);

const problems: string[] = [];
const files = await filesToCheck();
for (const file of files) {
  const lines = (await readFile(file, 'utf8')).split('\n');
  for (const [index, line] of lines.entries()) {
    const text = withoutFrozen(line);
    for (const pattern of [...WORDS, ...PHRASES]) {
      const found = pattern.exec(text)?.[0];
      if (found !== undefined) problems.push(`${file}:${index + 1}: "${found}"`);
    }
  }
}
process.stdout.write(`${files.length} files checked for words that riddle\n`);
for (const problem of problems) process.stderr.write(`${problem}: say it plainly\n`);
process.exit(problems.length === 0 ? 0 : 1);
