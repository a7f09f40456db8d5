/** GET /docs/errors: each error code, what it means and what to do. */
import { errorAdvice } from './error-advice.ts';
import {
  type CatalogEntry,
  doorplateErrorCodes,
  type ErrorCode,
  lookupErrorCodes,
  trackingErrorCodes,
  webhookErrorCodes,
} from './error-catalog.ts';

const SECTIONS: readonly (readonly [title: string, codes: readonly CatalogEntry<ErrorCode>[]])[] = [
  ['Lookup, usage and every call', lookupErrorCodes],
  ['Trackers, sessions and reveals', trackingErrorCodes],
  ['Webhooks', webhookErrorCodes],
  ['Custom domains', doorplateErrorCodes],
];

const entryOf = ({ status, code }: CatalogEntry<ErrorCode>): string => {
  const [meaning, action] = errorAdvice[code];
  return `<article id="${code}">
<h3><a href="#${code}">${code}</a> <small>${status}</small></h3>
<p>${meaning}</p>
<p><strong>What to do:</strong> ${action}</p>
</article>`;
};

const sections = SECTIONS.map(
  ([title, codes]) => `<section>\n<h2>${title}</h2>\n${codes.map(entryOf).join('\n')}\n</section>`,
);

/** The page; every code is an anchor (`/docs/errors#rate_limit`). */
export const errorPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Doorplate API: errors</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
<main>
<h1>Errors</h1>
<p>Every error has the body <code>{"error": {"code", "message"}, "request_id"}</code>. No error, time-out or 202 is ever a
negative match: only a 200 with <code>company_found=false</code> is. <a href="/docs">The API’s reference</a>.</p>
${sections.join('\n')}
</main>
</body>
</html>
`;
