/** GET /docs: the OpenAPI document as a page, from this server alone. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { RELEASE } from '../../platform/postgres/upgrade-path.ts';
import type { PublicRoute } from '../contract/route.ts';
import { staticRoute } from '../contract/static-route.ts';
import { documentationPage, errorPage } from '../errors/error-page.ts';
import { clientPackageRoute } from './client-package.ts';
import { API_VERSION, COUNTRY_ATTRIBUTION } from './openapi.ts';

const SCRIPT_SECONDS = 86_400;

const SCRIPT = { 'content-type': 'text/javascript; charset=utf-8' };
const STYLE = { 'content-type': 'text/css; charset=utf-8' };
const FONT = { 'content-type': 'font/woff2' };

/** Nothing that would ask another host: no validator, and no document but this one. */
const settings = {
  url: '/openapi.json',
  dom_id: '#reference',
  validatorUrl: null,
  queryConfigEnabled: false,
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
};

/**
 * Two parts of the renderer stand in the way of screen readers: links inside of buttons, and a select of servers without a name,
 * of which there is one.
 */
const starter = `const plain = (_, { React }) => ({ text }) => React.createElement('span', null, text);
SwaggerUIBundle({
  ...${JSON.stringify(settings)},
  plugins: [{ wrapComponents: { DeepLink: plain, ServersContainer: () => () => null } }],
});
// The renderer's dark colours are those of a class.
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
// Selects of examples have no name, and examples that scroll cannot be focused.
const reference = document.getElementById('reference');
new MutationObserver(() => {
  for (const select of reference.querySelectorAll('select:not([aria-label])')) select.setAttribute('aria-label', 'Example or type');
  for (const example of reference.querySelectorAll('pre:not([tabindex])')) example.tabIndex = 0;
}).observe(reference, { childList: true, subtree: true });
`;

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "style-src-attr 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
};

/** The page and what it is made of. The renderer's megabytes stay on disk until someone asks for them. */
export function docsRoutes(): PublicRoute[] {
  return [
    staticRoute('/docs', 0, { body: page, headers: HEADERS }),
    staticRoute('/docs/errors', 0, { body: errorPage, headers: HEADERS }),
    staticRoute('/docs/start.js', SCRIPT_SECONDS, { body: starter, headers: SCRIPT }),
    staticRoute('/docs/page.css', SCRIPT_SECONDS, { body: style, headers: STYLE }),
    clientPackageRoute(),
    packageRoute('/docs/swagger-ui.js', 'swagger-ui-dist/swagger-ui-bundle.js', SCRIPT),
    packageRoute('/docs/swagger-ui.css', 'swagger-ui-dist/swagger-ui.css', STYLE),
    packageRoute('/docs/geist.woff2', '@fontsource-variable/geist/files/geist-latin-wght-normal.woff2', FONT),
  ];
}

function packageRoute(path: string, file: string, headers: Readonly<Record<string, string>>): PublicRoute {
  const resolved = () => createRequire(import.meta.url).resolve(file);
  return staticRoute(path, SCRIPT_SECONDS, () => ({ body: readFileSync(resolved()), headers }));
}

/** The colours, type and cards of the dashboard (web/dashboard/README.md). */
const style = `@font-face { font-family: Geist; font-weight: 100 900; font-display: swap; src: url(/docs/geist.woff2) format("woff2") }
:root {
  color-scheme: light dark;
  --ground: light-dark(#f8f8f9, #0f1114); --raised: light-dark(#fff, #17191d); --line: light-dark(#e7e8eb, #282c32);
  --ink: light-dark(#16191d, #ecedef); --soft: light-dark(#5c636d, #a0a7b1); --accent: light-dark(#2451b8, #8fb2ff);
}
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.5 Geist, system-ui, sans-serif }
a { color: var(--accent); text-underline-offset: .2em }
h1 { margin: 0 0 .5rem; font-size: 22px; letter-spacing: -.01em }
h2 { margin: 2rem 0 .75rem; font-size: 16px }
.top { padding: .75rem 1.25rem; background: var(--raised); border-bottom: 1px solid var(--line) }
.top a { color: inherit; font-size: 16px; font-weight: 650; text-decoration: none }
.top a + a { margin-left: 1.5rem; color: var(--soft); font-size: 14px; font-weight: 500 }
.top img { width: 20px; margin-right: .5rem; vertical-align: -4px }
body > main { max-width: 46rem; margin: 1.5rem auto; padding: 0 1.25rem }
article { margin: 0 0 .75rem; padding: 1rem 1.25rem; background: var(--raised); border: 1px solid var(--line); border-radius: 8px }
article:target { outline: 2px solid var(--accent) }
h3 { margin: 0; font: 600 13px ui-monospace, monospace }
article p { margin: .25rem 0 }
.intro { max-width: 1420px; margin: 0 auto; padding: 1.5rem 1.25rem 0 }
html.dark-mode :is(.swagger-ui, .scheme-container), html.dark-mode { background: none; box-shadow: none }
.swagger-ui, .swagger-ui :is(.info .title, .opblock-tag, .btn, label, p, table, td, th, h4, h5, .opblock-summary-description) { font-family: Geist, system-ui, sans-serif }
.swagger-ui .info { margin: 1rem 0 }
.swagger-ui .info .title { color: var(--ink); font-size: 22px }
.swagger-ui .scheme-container { padding: 0; background: none; box-shadow: none }
/* Contrast of 4.5 to 1, which the renderer's own colours do not have. */
.swagger-ui .info .title small pre.version { background: #3b4151; color: #fff }
.swagger-ui .info .title small, .swagger-ui .info .title small.version-stamp { background: #3b4151 }
.swagger-ui .info a, .swagger-ui a.link, .swagger-ui .info .url, .swagger-ui .markdown a { color: var(--accent) }
.swagger-ui .btn.authorize, .swagger-ui .btn.authorize span { color: light-dark(#17663a, #7fd3a0); border-color: currentcolor }
.swagger-ui .opblock .opblock-summary-method { background: #3b4151 !important; color: #fff !important }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #2451b8 !important }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #17663a !important }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #7a4b00 !important }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #a3211c !important }
.swagger-ui .header-example, .swagger-ui .parameter__in, .swagger-ui .prop-format, .swagger-ui .parameter__name.required::after,
.swagger-ui .response-col_links, .swagger-ui .header-col, .swagger-ui .examples-select__section-label,
.swagger-ui .parameter__extension { color: light-dark(#4a4f57, #b7bcbf) !important }
.swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: light-dark(#5b21b6, #c4a7f0) !important; background: var(--raised) }
.swagger-ui .highlight-code .microlight span { color: #fff !important }
footer, noscript { display: block; padding: 1.5rem; color: var(--soft); text-align: center }
`;

const page = documentationPage(
  `Doorplate API ${API_VERSION}`,
  '<link rel="stylesheet" href="/docs/swagger-ui.css">\n',
  `<div class="intro"><h1>Doorplate API</h1>
<p>Contract ${API_VERSION}, served by Doorplate ${RELEASE}. Webhooks are signed by the
Standard Webhooks scheme; each endpoint's page in the
<a href="/dashboard/webhooks">dashboard</a> has the lines that verify a signature in TypeScript, Python, Go and PHP.</p></div>
<div id="reference"></div>
<noscript>The same as JSON: <a href="/openapi.json">/openapi.json</a></noscript>
<footer><a href="/docs/errors">What each error means</a>.
Visitor countries: ${COUNTRY_ATTRIBUTION}.</footer>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>`,
);
