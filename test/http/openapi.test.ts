import { validate } from '@readme/openapi-parser';
import { describe, expect, it } from 'vitest';
import { documentedRoutes } from '../../bin/api.ts';
import { errorBody } from '../../http/contract/responses.ts';
import { openApiDocument, openApiRoute } from '../../http/docs/openapi.ts';
import { aRoute, aServer } from './shell.ts';

const publicUrl = 'https://doorplate.example';
const routes = documentedRoutes();

/** The document as a client reads it. */
const document = JSON.parse(JSON.stringify(openApiDocument(routes, { publicUrl })));

const operations: { method: string; path: string; operation: Operation }[] = Object.entries(
  document.paths as Record<string, Record<string, Operation>>,
).flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => ({ method, path, operation })));

interface Operation {
  readonly security?: object[];
  readonly responses: Record<string, { headers: object; content: Record<string, { schema: object }> }>;
}

const companyFields = [
  'name',
  'website',
  'brand_name',
  'linkedin_url',
  'industry',
  'industry_subcategory',
  'employees',
  'revenue_band',
  'annual_revenue',
  'naics_code',
  'sic_code',
  'city',
  'region',
  'postal_code',
  'country_code',
  'country_name',
];

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1.1', async () => {
    expect(await validate(structuredClone(document))).toEqual(expect.objectContaining({ valid: true }));
    expect(document.openapi).toBe('3.1.1');
    expect(document.servers).toEqual([{ url: publicUrl }]);
    expect(document.info.description).toContain('IP Geolocation by DB-IP');
  });

  it('has the events that receivers get as its webhooks, where it has the routes of webhooks', () => {
    const types = ['session.created', 'reveal.completed', 'webhook.test'];
    expect(Object.keys(document.webhooks)).toEqual(types);
    const bodies = types.map((type) => document.webhooks[type].post.requestBody.content['application/json']);
    const schemas = bodies.map(({ schema }) => document.components.schemas[schema.$ref.split('/').at(-1)]);
    expect(schemas.map(({ properties }) => properties.type.const)).toEqual(types);
    expect(openApiDocument([], { publicUrl })).not.toHaveProperty('webhooks');
  });

  it('has the paths of the routes with an operation, and no others', () => {
    const more = [aRoute({ method: 'GET', path: '/docs' }), ...routes];
    const paths = Object.keys((openApiDocument(more, { publicUrl }) as { paths: object }).paths);

    const [described = [], others = []] = [true, false].map((is) =>
      routes.filter(({ operation }) => (operation !== undefined) === is),
    );
    expect(new Set(paths)).toEqual(new Set(described.map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'))));
    expect(operations.length).toBe(described.length);
    expect(others.map(({ method, path }) => `${method} ${path}`)).toEqual(['OPTIONS /tracking/collect']);
  });

  it('spells path parameters its own way', () => {
    const [route] = routes;
    const respelled = [
      { ...aRoute({ method: 'GET', path: '/v1/a/:one/b/:two_2' }), operation: route?.operation },
    ];
    const { paths } = openApiDocument(respelled as never, { publicUrl }) as { paths: object };

    expect(Object.keys(paths)).toEqual(['/v1/a/{one}/b/{two_2}']);
  });

  it.each(operations)('gives every response of $method $path its headers', ({ operation }) => {
    const demanded: Record<string, string> = {
      401: 'WWW-Authenticate',
      405: 'Allow',
      429: 'Retry-After',
      503: 'Retry-After',
    };
    for (const [status, { headers }] of Object.entries(operation.responses)) {
      const names = Object.keys(headers);
      expect(names).toEqual(expect.arrayContaining(['X-Request-ID', demanded[status] ?? 'X-Request-ID']));
    }
  });

  it('lets everyone ask for health and browsers send visits, and asks for a key elsewhere', () => {
    expect(document.security).toEqual([{ apiKey: [] }]);
    const open = operations.filter(({ operation }) => operation.security?.length === 0);
    expect(open.map(({ path }) => path)).toEqual(['/tracking/a.js', '/tracking/collect', '/healthz']);
  });

  it('carries the catalogs: 26, 32 and 4 codes', () => {
    const sizes = ['x-error-codes', 'x-tracking-error-codes', 'x-doorplate-error-codes'].map(
      (name) => document[name].length,
    );

    expect(sizes).toEqual([26, 32, 4]);
    expect(Object.keys(document['x-error-codes'][0])).toEqual(['status', 'code', 'description']);
  });

  it.each([
    ['POST', '/v1/lookup', ['200', '202', '400', '401', '405', '413', '414', '415', '429', '503']],
    ['GET', '/v1/lookup', ['200', '202', '400', '401', '404', '405', '414', '429', '503']],
    ['GET', '/v1/usage', ['200', '400', '401', '405', '414', '429', '503']],
    ['GET', '/v1/sessions', ['200', '400', '401', '404', '405', '429', '503']],
    ['GET', '/v1/sessions/{session_id}', ['200', '400', '401', '404', '405', '410', '429', '503']],
    ['POST', '/tracking/collect', ['204', '400', '403', '404', '405', '410', '413', '415', '429', '503']],
    ['POST', '/v1/webhooks', ['201', '400', '401', '404', '405', '413', '415', '429', '503']],
    ['GET', '/v1/webhooks/{webhook_id}', ['200', '400', '401', '404', '405', '429', '503']],
    [
      'POST',
      '/v1/trackers/{tracker_id}/domains',
      ['201', '400', '401', '404', '405', '409', '410', '413', '415', '429', '503'],
    ],
    [
      'GET',
      '/v1/trackers/{tracker_id}/domains/{domain_id}',
      ['200', '400', '401', '404', '405', '410', '429', '503'],
    ],
    ['GET', '/healthz', ['200', '405', '503']],
  ])('lists the statuses of %s %s', (method, path, statuses) => {
    expect(Object.keys(document.paths[path][method.toLowerCase()].responses)).toEqual(statuses);
  });

  it.each([
    '/v1/trackers/{tracker_id}/enable',
    '/v1/trackers/{tracker_id}/delete',
    '/v1/sessions/{session_id}/reveal',
    '/v1/webhooks/{webhook_id}/rotate-secret',
  ])('lets a body of POST %s be `{}` or missing', (path) => {
    const { requestBody } = document.paths[path].post;
    const { schema } = requestBody.content['application/json'];

    expect([requestBody.required ?? false, schema.type, schema.additionalProperties]).toEqual([
      false,
      'object',
      false,
    ]);
  });

  it("requires the contract's fields, leaves answers open and requests closed", () => {
    const { Lookup, Company, LookupRequest } = document.components.schemas;

    expect(Lookup.required).not.toContain('company_signals');
    expect(new Set(Company.required)).toEqual(new Set(companyFields));
    expect([Lookup.additionalProperties, LookupRequest.additionalProperties]).toEqual([undefined, false]);
  });

  it('describes error answers as they are', async () => {
    const answer = await aServer().inject({ url: '/v1/lookup', headers: {} });

    expect(errorBody.strict().parse(answer.json())).toEqual(answer.json());
  });

  it('is served to everyone, once, until it changes', async () => {
    const app = aServer({ routes: [openApiRoute(document)] });
    const first = await app.inject('/openapi.json');
    const again = await app.inject({
      url: '/openapi.json',
      headers: { 'if-none-match': String(first.headers.etag) },
    });

    expect(first.json()).toEqual(document);
    expect(first.headers['cache-control']).toBe('public, max-age=300');
    expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, '', first.headers.etag]);
  });
});
