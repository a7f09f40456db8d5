/** GET /docs: the OpenAPI document as a page, from this server alone. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PublicRoute } from '../contract/route.ts';
import { staticRoute } from '../contract/static-route.ts';
import { documentationPage, errorPage } from '../errors/error-page.ts';
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

const starter = `SwaggerUIBundle(${JSON.stringify(settings)});\n`;

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
    rendererRoute('/docs/swagger-ui.js', 'swagger-ui-bundle.js', SCRIPT),
    rendererRoute('/docs/swagger-ui.css', 'swagger-ui.css', STYLE),
  ];
}

function rendererRoute(path: string, file: string, headers: Readonly<Record<string, string>>): PublicRoute {
  const resolved = () => createRequire(import.meta.url).resolve(`swagger-ui-dist/${file}`);
  return staticRoute(path, SCRIPT_SECONDS, () => ({ body: readFileSync(resolved()), headers }));
}

const style = `body { margin: 0 }
main { max-width: 45rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif }
article { margin: 0 0 1.5rem }
article:target { outline: 2px solid; outline-offset: .5rem }
h3 { margin: 0; font-family: ui-monospace, monospace }
article p { margin: .25rem 0 }
footer, noscript { display: block; padding: 1rem; font: 14px system-ui, sans-serif; text-align: center }
`;

const page = documentationPage(
  `Doorplate API ${API_VERSION}`,
  '<link rel="stylesheet" href="/docs/swagger-ui.css">\n',
  `<div id="reference"></div>
<noscript>The same as JSON: <a href="/openapi.json">/openapi.json</a></noscript>
<footer><a href="/docs/errors">What each error means</a>.
Visitor countries: ${COUNTRY_ATTRIBUTION}.</footer>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>`,
);
