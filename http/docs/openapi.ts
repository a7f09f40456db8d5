/** The OpenAPI document, made from the schemas and operations that the routes carry (contract, Requests 13). */
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { sentEvents } from '../../read-api/webhooks/delivery-schemas.ts';
import { quotaHeaders } from '../contract/responses.ts';
import type { Route } from '../contract/route.ts';
import { staticRoute } from '../contract/static-route.ts';
import {
  doorplateErrorCodes,
  lookupErrorCodes,
  trackingErrorCodes,
  webhookErrorCodes,
} from '../errors/error-catalog.ts';

/** The version of the interface, not of the program (contract, Requests 13). */
export const API_VERSION = '1.14.2';

/** CC BY 4.0 asks for it wherever a country is shown. */
export const COUNTRY_ATTRIBUTION = 'IP Geolocation by DB-IP (https://db-ip.com), CC BY 4.0';

/** What of a route stands in the document. */
export type DocumentedRoute = Pick<Route, 'method' | 'path' | 'access' | 'operation'>;

const description = `Tells which company is behind an IP address or a website visit.

Call \`POST /v1/lookup\` with an address. If it is unknown, the answer is 202: poll \`GET /v1/lookup\`. A
time-out, a 202, a 404 \`not_requested\` or any error is never a negative match; only a 200 with
\`company_found=false\` is.

Every response carries \`X-Request-ID\`. Errors have the shape \`Error\`; their codes are listed under
\`x-error-codes\`, \`x-tracking-error-codes\` and \`x-doorplate-error-codes\`.

Visitor countries: ${COUNTRY_ATTRIBUTION}.`;

const tags = [
  { name: 'Lookup', description: 'Which company is behind an IP address.' },
  { name: 'Usage', description: 'What a key has used.' },
  { name: 'Billing', description: 'The ledger that a bill is made of, for checking it.' },
  { name: 'Trackers', description: 'Pixels on customer websites.' },
  { name: 'Custom domains', description: "Host names of a customer's own for the pixel." },
  { name: 'Sessions', description: 'Visits that a pixel recorded.' },
  { name: 'Reveals', description: 'The company behind a session.' },
  { name: 'Webhooks', description: 'Signed events to HTTPS endpoints.' },
  { name: 'Health', description: 'Whether the process is running.' },
];

/**
 * The document for these routes; those without an operation stay out of it.
 * @param publicUrl the origin that callers reach the service at
 */
export function openApiDocument(
  routes: readonly DocumentedRoute[],
  { publicUrl }: { publicUrl: string },
): object {
  const used = new Set(routes.flatMap((route) => route.operation?.tags ?? []));
  return createDocument(
    {
      openapi: '3.1.1',
      info: {
        title: 'Doorplate',
        version: API_VERSION,
        description,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: publicUrl }],
      security: [{ apiKey: [] }],
      tags: tags.filter((tag) => used.has(tag.name)),
      paths: pathsOf(routes),
      ...(used.has('Webhooks') ? { webhooks: sentEvents } : {}),
      components: {
        securitySchemes: {
          apiKey: {
            type: 'http',
            scheme: 'bearer',
            description: 'An API key. From a server only, never in a URL.',
          },
        },
      },
      'x-error-codes': lookupErrorCodes,
      'x-tracking-error-codes': [...trackingErrorCodes, ...webhookErrorCodes],
      'x-doorplate-error-codes': doorplateErrorCodes,
    },
    { override: plainer },
  );
}

function pathsOf(routes: readonly DocumentedRoute[]): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {};
  for (const { method, path, access, operation } of routes) {
    if (operation === undefined) continue;
    const templated = path.replaceAll(/:(\w+)/g, '{$1}');
    const secured =
      access === 'public'
        ? { ...operation, security: [] }
        : { ...operation, responses: withQuota(operation) };
    paths[templated] = { ...paths[templated], [method.toLowerCase()]: secured };
  }
  return paths;
}

/** Returns the responses of an operation with a key; refusals may come before the key is known. */
function withQuota({ responses }: ZodOpenApiOperationObject): ZodOpenApiResponsesObject {
  const quotaOf = (status: string) => (status.startsWith('2') ? quotaHeaders : quotaHeaders.partial());
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const { headers } = response as { headers?: unknown };
      if (BEFORE_THE_KEY.has(status) || !(headers instanceof z.ZodObject)) return [status, response];
      return [status, { ...response, headers: headers.extend(quotaOf(status).shape) }];
    }),
  );
}

const BEFORE_THE_KEY: ReadonlySet<string> = new Set(['401', '405', '414']);

/**
 * Leaves out what zod adds beside a format or to every integer, which tells a reader nothing, and leaves
 * answers open, so that a field more breaks no client.
 */
const plainer: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  const { def } = zodSchema._zod;
  const declaredClosed = def.type === 'object' && def.catchall !== undefined;
  if (io === 'output' && jsonSchema.additionalProperties === false && !declaredClosed) {
    delete jsonSchema.additionalProperties;
  }
};

/** GET /openapi.json: public, the same for everyone, cacheable for five minutes. */
export function openApiRoute(document: object): Route {
  return staticRoute('/openapi.json', 300, {
    body: JSON.stringify(document),
    headers: { 'content-type': 'application/json', 'access-control-allow-origin': '*' },
  });
}
