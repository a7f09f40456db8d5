import { type OpsHandler, sendJson } from '../../platform/ops-server.ts';

/**
 * Handles GET /tls-allowed?domain=: tells the edge, on a name's first visit, whether to request a certificate: 200 for the
 * service's own name and active custom domains, otherwise 404, and 503 if that is unknown. Makes no DNS query.
 */
export const tlsAllowedHandler =
  (isOwn: (host: string) => boolean, mayHaveCertificate: (host: string) => Promise<boolean>): OpsHandler =>
  async (_request, response, { searchParams }) => {
    const [domain = '', ...more] = searchParams.getAll('domain').map((name) => name.toLowerCase());
    try {
      const allowed = more.length === 0 && (isOwn(domain) || (await mayHaveCertificate(domain)));
      sendJson(response, allowed ? 200 : 404, { allowed });
    } catch {
      sendJson(response, 503, { error: 'unavailable' });
    }
  };
