import { createHash } from 'node:crypto';
import type { ApiRequest, Reply } from '../../http/contract/route.ts';
import { csvRow } from '../../platform/csv.ts';
import type { Html } from './components.ts';

/** Every resource of a page comes from this origin, and no site may frame a page. No inline script or style. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
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

const RETRY_AFTER_SECONDS = 5;

/** A page. `retryAfter`: seconds, for 429 and 503. */
export const htmlAnswer = (status: number, page: Html, retryAfter = RETRY_AFTER_SECONDS): Reply => ({
  status,
  body: page.toString(),
  headers: {
    ...SECURITY_HEADERS,
    'content-type': 'text/html; charset=utf-8',
    ...(status === 429 || status === 503 ? { 'retry-after': String(retryAfter) } : {}),
  },
});

/** A download with this file name. */
export const fileAnswer = (name: string, type: string, body: string): Reply => ({
  status: 200,
  body,
  headers: {
    ...SECURITY_HEADERS,
    'content-type': type,
    'content-disposition': `attachment; filename="${name}"`,
  },
});

/** Excel takes a file without it for one of the machine's own code page. */
const BYTE_ORDER_MARK = '\uFEFF';

/** A download as CSV (RFC 4180), one line a row: line breaks within a cell become spaces. An empty text is an empty field. */
export const csvAnswer = (
  name: string,
  heads: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
): Reply =>
  fileAnswer(
    name,
    'text/csv; charset=utf-8',
    BYTE_ORDER_MARK + [heads, ...rows].map((row) => `${csvRow(row.map(onOneLine))}\r\n`).join(''),
  );

const onOneLine = (cell: string | number | null) =>
  typeof cell === 'string' ? cell.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ') || null : cell;

/** Sent by the browser only to this host over https (or on this machine), and hidden from scripts. */
const COOKIE = '__Host-doorplate';
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax';

const DEVICE_SECONDS = 90 * 24 * 3_600;

export const loginCookie = (token: string) => ({ 'set-cookie': `${COOKIE}=${token}; ${ATTRIBUTES}` });
/** The same, and the cookie of a device that has logged in before, which stays after a logout. */
export const loginAndDeviceCookies = (token: string, device: string) => ({
  'set-cookie': [
    loginCookie(token)['set-cookie'],
    `${COOKIE}-device=${device}; ${ATTRIBUTES}; Max-Age=${DEVICE_SECONDS}`,
  ],
});
export const noLoginCookie = { 'set-cookie': `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0` };

const FLASH = `${COOKIE}-said`;
/** Longer than a browser takes to follow the redirect. */
const FLASH_SECONDS = 60;

/**
 * Redirects after a change, so that a reload does not repeat the change. `flash`: the message that the next page shows once, which stands
 * in a cookie, because an address may be opened again.
 */
export const redirectAfterPost = (
  path: string,
  flash?: string,
  headers: NonNullable<Reply['headers']> = {},
): Reply => {
  const cookies = [headers['set-cookie'] ?? []].flat();
  if (flash !== undefined) cookies.push(`${FLASH}=${flash}; ${ATTRIBUTES}; Max-Age=${FLASH_SECONDS}`);
  return {
    status: 303,
    body: null,
    headers: {
      ...SECURITY_HEADERS,
      location: path,
      ...headers,
      ...(cookies.length === 0 ? {} : { 'set-cookie': cookies }),
    },
  };
};

const SAID = /(?:^|;)[ \t]*__Host-doorplate-said=([\w-]{1,40})(?:$|;)/;

/** The flash message of a redirect, by its name; null: there is none, or a script asks, which shows no message. */
export function flashIn(request: ApiRequest): string | null {
  if ((request.header('sec-fetch-dest') ?? 'document') !== 'document') return null;
  return SAID.exec(request.header('cookie') ?? '')?.[1] ?? null;
}

/** A page that has shown the flash message. */
export const afterFlash = (page: Reply): Reply => ({
  ...page,
  headers: { ...page.headers, 'set-cookie': `${FLASH}=; ${ATTRIBUTES}; Max-Age=0` },
});

/** An expression with `COOKIE`, because a header has room for 15,000 pairs. */
const TOKEN = /(?:^|;)[ \t]*__Host-doorplate=([^;= \t]+)/;

/** The token in a Cookie header (RFC 6265 section 4.2); null where there is none. */
export const tokenIn = (header: string | undefined): string | null => TOKEN.exec(header ?? '')?.[1] ?? null;

const DEVICE = /(?:^|;)[ \t]*__Host-doorplate-device=([^;= \t]{1,100})(?:$|;)/;

/** The device cookie in a Cookie header; null where there is none. */
export const deviceIn = (header: string | undefined): string | null => DEVICE.exec(header ?? '')?.[1] ?? null;

/** The CSRF token of a form: derived from the login's token, and useless as one. */
export const csrfOf = (token: string): string =>
  createHash('sha256').update(`a form of ${token}`).digest('base64url');
