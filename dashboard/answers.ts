import { createHash } from 'node:crypto';
import type { Answer } from '../http/route.ts';
import type { Html } from './html.ts';

/** Everything that a page needs comes from here, and nobody frames it. No inline script or style. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SECURITY_HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** What 429 and 503 tell to wait where nothing better is known. */
const RETRY_AFTER_SECONDS = 5;

/** A page. `retryAfter`: seconds, for 429 and 503. */
export const htmlAnswer = (status: number, page: Html, retryAfter = RETRY_AFTER_SECONDS): Answer => ({
  status,
  body: page.toString(),
  headers: {
    ...SECURITY_HEADERS,
    'content-type': 'text/html; charset=utf-8',
    ...(status === 429 || status === 503 ? { 'retry-after': String(retryAfter) } : {}),
  },
});

/** A file to keep, named so. */
export const fileAnswer = (name: string, type: string, body: string): Answer => ({
  status: 200,
  body,
  headers: {
    ...SECURITY_HEADERS,
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
  },
});

/** After what has changed something: a reload of the page that follows does not do it again. */
export const redirectAfterPost = (
  path: string,
  flash?: string,
  headers: Readonly<Record<string, string>> = {},
): Answer => ({
  status: 303,
  body: null,
  headers: {
    ...SECURITY_HEADERS,
    location: flash === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}said=${flash}`,
    ...headers,
  },
});

/** Kept by the browser for this host and https (or this machine) alone, out of any script's reach. */
const COOKIE = '__Host-doorplate';
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax';

export const loginCookie = (token: string) => ({ 'set-cookie': `${COOKIE}=${token}; ${ATTRIBUTES}` });
export const noLoginCookie = { 'set-cookie': `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0` };

/** The token in a Cookie header (RFC 6265 section 4.2); null where there is none. */
export const tokenIn = (header: string | undefined): string | null => {
  for (const pair of header?.split(';') ?? []) {
    const [name, value] = pair.trim().split('=');
    if (name === COOKIE && value) return value;
  }
  return null;
};

/** What a form must carry: known to pages of this login alone, and no use as its token. */
export const csrfOf = (token: string): string =>
  createHash('sha256').update(`a form of ${token}`).digest('base64url');
