import { readFileSync } from 'node:fs';
import { copyable, type Html, html } from '../components.ts';

const LANGUAGES = [
  ['typescript', 'TypeScript', 'On Node: headers and the raw body of the request.'],
  ['python', 'Python', 'Headers with names in lower case, and the raw body.'],
  ['go', 'Go', 'The header of the request, and the raw body.'],
  ['php', 'PHP', "Headers with names in lower case; the raw body is file_get_contents('php://input')."],
] as const;

const SNIPPETS = LANGUAGES.map(([file, name, hint]) => ({
  ...{ name, hint },
  code: readFileSync(new URL(`../snippets/${file}.txt`, import.meta.url), 'utf8').trimEnd(),
}));

/** How a server verifies a delivery, in four languages; `docs/webhooks.md` has the same. */
export const verificationSnippets = (): Html =>
  html`${SNIPPETS.map(
    ({ name, hint, code }) =>
      html`<details><summary>${name}</summary><p class="soft">${hint}</p>${copyable(`Verification in ${name}`, code)}</details>`,
  )}`;
