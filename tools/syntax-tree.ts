import { readFile } from 'node:fs/promises';
import { parse } from 'oxc-parser';

export interface SourceFile {
  readonly text: string;
  /** Calls `visit` with every object of the syntax tree, the outer ones first. */
  walk(visit: (node: object) => void): void;
}

/** Parses a file of TypeScript or JavaScript. @throws an Error with the first syntax error */
export const parseFile = async (file: string): Promise<SourceFile> => {
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
