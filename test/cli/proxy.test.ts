import { describe, expect, it } from 'vitest';
import { judgeProbe } from '../../cli/operations/network-checks.ts';

const SEEN = {
  id: '1',
  host: 'api.example',
  is_own_host: true,
  peer: '10.0.0.2',
  is_trusted_peer: true,
  client: '192.0.2.7',
  forwarded_for: '192.0.2.7',
  forwarded_proto: 'https',
};

describe('the request that doctor sends through PUBLIC_URL', () => {
  it('passes with and without a proxy', () => {
    expect(judgeProbe(SEEN, 'https://api.example').ok).toBe(true);
    const direct = {
      ...SEEN,
      peer: '127.0.0.1',
      client: '127.0.0.1',
      forwarded_for: null,
      forwarded_proto: null,
    };
    expect(judgeProbe(direct, 'http://127.0.0.1:3000').ok).toBe(true);
  });

  it.each([
    ['Host', { host: '127.0.0.1:3000', is_own_host: false }, /arrives with Host 127\.0\.0\.1:3000/],
    [
      'the nearest proxy',
      { is_trusted_peer: false, client: '10.0.0.2' },
      /TRUSTED_PROXIES is too narrow: the proxy 10\.0\.0\.2/,
    ],
    [
      'a proxy further out',
      { client: '10.0.0.3', forwarded_for: '192.0.2.7, 10.0.0.3' },
      /10\.0\.0\.3 counts as the visitor/,
    ],
    ['no X-Forwarded-For', { forwarded_for: null, client: '10.0.0.2' }, /no X-Forwarded-For/],
  ])('names %s', (_of, seen, detail) => {
    const judged = judgeProbe({ ...SEEN, ...seen }, 'https://api.example');
    expect(judged).toMatchObject({
      ok: false,
      detail: expect.stringMatching(detail),
      fix: expect.any(String),
    });
  });

  it('names a PUBLIC_URL that says http where callers come by https', () => {
    expect(judgeProbe(SEEN, 'http://api.example')).toMatchObject({
      ok: false,
      fix: 'PUBLIC_URL=https://api.example',
    });
  });
});
