import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { docsRoutes } from '../../http/docs/docs-page.ts';
import {
  doorplateErrorCodes,
  lookupErrorCodes,
  trackingErrorCodes,
  webhookErrorCodes,
} from '../../http/errors/error-catalog.ts';
import { healthRoute } from '../../http/server/health.ts';
import { aServer } from './shell.ts';

const app = aServer({ routes: [...docsRoutes(), healthRoute(() => true)] });

describe('the documentation page', () => {
  it('allows no other host and no inline script', async () => {
    const { headers, body } = await app.inject('/docs');
    const policy = String(headers['content-security-policy']);

    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(policy).toContain("default-src 'none'; script-src 'self';");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(body).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(body).toContain('IP Geolocation by DB-IP');
  });

  it('brings its renderer along, compressed for who takes it', async () => {
    const plain = await app.inject({ url: '/docs/swagger-ui.js' });
    const small = await app.inject({
      url: '/docs/swagger-ui.js',
      headers: { 'accept-encoding': 'br, gzip' },
    });
    const refused = await app.inject({
      url: '/docs/swagger-ui.js',
      headers: { 'accept-encoding': 'gzip;q=0, br' },
    });

    expect(gunzipSync(small.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(small.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
    expect(small.headers.etag).not.toBe(plain.headers.etag);
    expect(refused.headers['content-encoding']).toBeUndefined();
  });

  it.each(['*', 'W/"x", %', 'W/%'])('is not sent again to who knows it: %s', async (pattern) => {
    const { headers } = await app.inject('/docs/start.js');
    const known = pattern.replace('%', String(headers.etag));
    const answer = await app.inject({ url: '/docs/start.js', headers: { 'if-none-match': known } });

    expect([answer.statusCode, answer.headers['content-type']]).toEqual([304, undefined]);
  });
});

describe('the page of errors', () => {
  it('says of every code what it means and what to do', async () => {
    const { body, headers } = await app.inject('/docs/errors');
    const codes = [...lookupErrorCodes, ...trackingErrorCodes, ...webhookErrorCodes, ...doorplateErrorCodes];

    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    for (const { code, status } of codes) {
      const article = body.split(`<article id="${code}">`)[1]?.split('</article>')[0] ?? '';
      expect(article, code).toContain(`<small>${status}</small>`);
      expect(article, code).toMatch(/<p>\S.+<\/p>\n<p><strong>What to do:<\/strong> \S.+<\/p>/);
    }
    expect(body.match(/<article id=/g)).toHaveLength(codes.length);
  });
});

describe('GET /healthz', () => {
  it.each([
    [true, 200, { status: 'ok' }],
    [
      false,
      503,
      expect.objectContaining({ error: expect.objectContaining({ code: 'service_unavailable' }) }),
    ],
  ])('with health %s answers %i', async (healthy, status, body) => {
    const answer = await aServer({ routes: [healthRoute(() => healthy)] }).inject('/healthz');

    expect([answer.statusCode, answer.json()]).toEqual([status, body]);
  });
});
