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
    rendererRoute('/docs/swagger-ui.js', 'swagger-ui-bundle.js', SCRIPT),
    rendererRoute('/docs/swagger-ui.css', 'swagger-ui.css', STYLE),
  ];
}

function rendererRoute(path: string, file: string, headers: Readonly<Record<string, string>>): PublicRoute {
  const resolved = () => createRequire(import.meta.url).resolve(`swagger-ui-dist/${file}`);
  return staticRoute(path, SCRIPT_SECONDS, () => ({ body: readFileSync(resolved()), headers }));
}

const style = `body { margin: 0 }
body > main { max-width: 45rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif }
article { margin: 0 0 1.5rem }
article:target { outline: 2px solid; outline-offset: .5rem }
h3 { margin: 0; font-family: ui-monospace, monospace }
article p { margin: .25rem 0 }
header { max-width: 1460px; margin: 0 auto; padding: 1.5rem 1.25rem 0; font: 16px/1.5 system-ui, sans-serif }
#reference { background: #fff }
/* Contrast of 4.5 to 1, which the renderer's own colours do not have. */
.swagger-ui .info .title small pre.version { background: #3b4151; color: #fff }
.swagger-ui .info .title small, .swagger-ui .info .title small.version-stamp { background: #3b4151 }
.swagger-ui .info a, .swagger-ui a.link, .swagger-ui .info .url, .swagger-ui .markdown a { color: #1a5fb4 }
.swagger-ui .btn.authorize, .swagger-ui .btn.authorize span { color: #17663a; border-color: #17663a }
.swagger-ui .opblock .opblock-summary-method { background: #3b4151 !important }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1a5fb4 !important }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #17663a !important }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #7a4b00 !important }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #a3211c !important }
.swagger-ui .header-example, .swagger-ui .parameter__in, .swagger-ui .prop-format, .swagger-ui .parameter__name.required::after,
.swagger-ui .response-col_links, .swagger-ui .parameter__extension { color: #4a4f57 !important }
.swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: #5b21b6 !important; background: #fff }
.swagger-ui .highlight-code .microlight span { color: #fff !important }
footer, noscript { display: block; padding: 1rem; font: 14px system-ui, sans-serif; text-align: center }
`;

const page = documentationPage(
  `Doorplate API ${API_VERSION}`,
  '<link rel="stylesheet" href="/docs/swagger-ui.css">\n',
  `<header><h1>Doorplate API</h1>
<p>Contract ${API_VERSION}, served by Doorplate ${RELEASE}. Webhooks are signed by the
Standard Webhooks scheme; each endpoint's page in the
<a href="/dashboard/webhooks">dashboard</a> has the lines that verify a signature in TypeScript, Python, Go and PHP.</p></header>
<div id="reference"></div>
<noscript>The same as JSON: <a href="/openapi.json">/openapi.json</a></noscript>
<footer><a href="/docs/errors">What each error means</a>.
Visitor countries: ${COUNTRY_ATTRIBUTION}.</footer>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>`,
);
