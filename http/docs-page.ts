/** GET /docs: the OpenAPI document as a page, from this server alone. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { API_VERSION, COUNTRY_ATTRIBUTION } from './openapi.ts';
import type { Answer, Route } from './route.ts';
import { staticRoute } from './static-route.ts';

const SCRIPT_SECONDS = 86_400;

/** Nothing that would ask another host: no fonts, proxy, telemetry, assistant or hosted client. */
const settings = {
  url: '/openapi.json',
  telemetry: false,
  withDefaultFonts: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
};

/**
 * Runs before the renderer, which gives the page's nonce to its main style element and forgets it on those
 * it makes later; without this the policy would have to allow any inline style.
 */
const starter = `const { content } = document.querySelector('meta[property=csp-nonce]');
const create = document.createElement.bind(document);
document.createElement = (name, options) => {
  const element = create(name, options);
  if (name === 'style') element.nonce = content;
  return element;
};
addEventListener('DOMContentLoaded', () => {
  Scalar.createApiReference('#reference', ${JSON.stringify(settings)});
});
`;

/** The page, its script and the renderer. The renderer's 4 MB stay on disk until someone asks for them. */
export function docsRoutes(): Route[] {
  const script = { 'content-type': 'text/javascript; charset=utf-8' };
  return [
    {
      method: 'GET',
      path: '/docs',
      access: 'public',
      body: 'none',
      bodyLimit: 0,
      handle: docsPage,
    },
    staticRoute('/docs/start.js', SCRIPT_SECONDS, { body: starter, headers: script }),
    rendererRoute(script),
  ];
}

function rendererRoute(headers: Readonly<Record<string, string>>): Route {
  let loaded: Route | null = null;
  const load = () =>
    staticRoute('/docs/scalar.js', SCRIPT_SECONDS, { body: readFileSync(rendererFile()), headers });
  return {
    method: 'GET',
    path: '/docs/scalar.js',
    access: 'public',
    body: 'none',
    bodyLimit: 0,
    handle(request) {
      loaded ??= load();
      return loaded.handle(request);
    },
  };
}

/** The browser build beside the package's entry, which is the only file that its `exports` lets be resolved. */
function rendererFile(): string {
  const entry = createRequire(import.meta.url).resolve('@scalar/api-reference');
  return join(dirname(entry), 'browser', 'standalone.js');
}

function docsPage(): Answer {
  const nonce = randomBytes(16).toString('base64');
  return {
    status: 200,
    body: page(nonce),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy(nonce),
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  };
}

function policy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function page(nonce: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta property="csp-nonce" content="${nonce}">
<title>Doorplate API ${API_VERSION}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">body{margin:0}footer{padding:1rem;font:14px system-ui,sans-serif;text-align:center}</style>
</head>
<body>
<div id="reference"></div>
<noscript>The same as JSON: <a href="/openapi.json">/openapi.json</a></noscript>
<footer>Visitor countries: ${COUNTRY_ATTRIBUTION}.</footer>
<script src="/docs/start.js"></script>
<script src="/docs/scalar.js"></script>
</body>
</html>
`;
}
