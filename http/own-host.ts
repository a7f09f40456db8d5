/** Which Host headers name this service. */

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Whether a Host header is that of the service's own URL; where this is a loopback one, any name of the loopback will
 * do with its port.
 */
export const createOwnHost = (publicUrl: string): ((host: string) => boolean) => {
  const own = new URL(publicUrl);
  const names = LOOPBACK.includes(own.hostname) ? LOOPBACK : [own.hostname];
  const port = own.port === '' ? '' : `:${own.port}`;
  const hosts = new Set(names.map((name) => name + port));
  if (port === '') for (const name of names) hosts.add(`${name}:${own.protocol === 'https:' ? 443 : 80}`);
  return (host) => hosts.has(host) || hosts.has(host.toLowerCase());
};
