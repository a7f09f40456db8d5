import type { IncomingMessage } from 'node:http';

/**
 * Tells why a proxy in front could have understood the message in another way than this server does: two Host headers
 * (RFC 9112 section 3.2), a Transfer-Encoding other than chunked, or one in a version without it (section 6.1). null: it could
 * not.
 */
export function ambiguityOf({ rawHeaders, headers, httpVersion }: IncomingMessage): string | null {
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && httpVersion !== '1.1') {
    return 'The request has a Transfer-Encoding, which its version of HTTP does not define.';
  }
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'chunked') {
    return 'The Transfer-Encoding is not chunked.';
  }
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1 ? 'The request has more than one Host header.' : null;
}
