/**
 * Finds regular expressions with superlinear time, because a caller's header or field must not block the event loop.
 * Checks every literal outside tests and rejects `new RegExp`, whose source is not in the code. Part of `npm run check`.
 */
import { glob, readFile } from 'node:fs/promises';
import { parse } from 'oxc-parser';
import { check } from 'recheck';

interface SourceFile {
  readonly text: string;
  /** Calls `visit` with every object of the syntax tree, the outer ones first. */
  walk(visit: (node: object) => void): void;
}

/** Parses a file of TypeScript or JavaScript. @throws an Error with the first syntax error */
const parseFile = async (file: string): Promise<SourceFile> => {
  const text = await readFile(file, 'utf8');
  const { program, errors } = await parse(file, text);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  return { text, walk: (visit) => walk(program.body, visit) };
};

const walk = (node: unknown, visit: (node: object) => void): void => {
  if (node === null || typeof node !== 'object') return;
  visit(node);
  for (const child of Object.values(node)) walk(child, visit);
};

interface Expression {
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

const NOT_SHIPPED = /^(node_modules|test|bench|web\/pixel\/dist)\/|\/(node_modules|dist|examples)\//;

const shippedFiles = async (): Promise<string[]> => {
  const files: string[] = [];
  for await (const file of glob(['**/*.ts', '**/*.js', '**/*.mjs'])) {
    if (!NOT_SHIPPED.test(file)) files.push(file);
  }
  return files.sort();
};

/** Returns the expressions of a file, `null` for one that is built at run time. */
const expressionsOf = async (file: string): Promise<(Expression | null)[]> => {
  const found: (Expression | null)[] = [];
  (await parseFile(file)).walk((node) => {
    const { type, regex, callee } = node as {
      readonly type?: string;
      readonly regex?: { readonly pattern: string; readonly flags: string };
      readonly callee?: { readonly name?: string };
    };
    if (regex !== undefined) found.push({ file, source: regex.pattern, flags: regex.flags });
    const made = type === 'NewExpression' || type === 'CallExpression';
    if (made && callee?.name === 'RegExp') found.push(null);
  });
  return found;
};

const problemOf = async ({ file, source, flags }: Expression): Promise<string | null> => {
  // Without its inner time limits, by which a busy machine would get another verdict than an idle one.
  const verdict = await check(source, flags, {
    timeout: 120_000,
    attackTimeout: null,
    incubationTimeout: null,
    seedingTimeout: null,
  });
  if (verdict.status === 'safe') return null;
  const what = verdict.status === 'vulnerable' ? verdict.complexity.summary : verdict.error.kind;
  return `${file}: /${source}/${flags} is not linear: ${what}`;
};

// recheck's native program and jar, 52 MB, are not installed (`overrides` in package.json); the verdicts are the same.
process.env.RECHECK_BACKEND = 'pure';
const problems: string[] = [];
let checked = 0;
for (const file of await shippedFiles()) {
  for (const expression of await expressionsOf(file)) {
    checked += 1;
    const problem =
      expression === null ? `${file}: write the expression as a literal` : await problemOf(expression);
    if (problem !== null) problems.push(problem);
  }
}
process.stdout.write(`${checked} regular expressions checked\n`);
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exit(problems.length === 0 ? 0 : 1);
