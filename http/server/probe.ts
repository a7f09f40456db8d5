/** The request that `doorplate doctor` sends through `PUBLIC_URL`, as this process sees it behind the proxies. */
import type { IncomingMessage } from 'node:http';

/** Begins the User-Agent of the request; an id of one run follows. */
export const PROBE_AGENT = 'doorplate-doctor/';

export interface SeenProbe {
  readonly id: string;
  readonly host: string;
  /** Whether pixels work under that Host. */
  readonly is_own_host: boolean;
  readonly peer: string;
  readonly is_trusted_peer: boolean;
  /** The address that counts as the visitor's. */
  readonly client: string;
  readonly forwarded_for: string | null;
  readonly forwarded_proto: string | null;
}

export interface Probes {
  /** Keeps the last probe; looks at no other request. */
  note(request: IncomingMessage): void;
  last(): SeenProbe | null;
}

interface ProbesOptions {
  readonly isOwnHost: (host: string) => boolean;
  readonly isTrusted: (address: string) => boolean;
  readonly clientOf: (request: { peer: string; header(name: string): string | undefined }) => string;
}

export function createProbes({ isOwnHost, isTrusted, clientOf }: ProbesOptions): Probes {
  let last: SeenProbe | null = null;
  return {
    note({ headers, socket }) {
      const agent = headers['user-agent'];
      if (agent === undefined || !agent.startsWith(PROBE_AGENT)) return;
      const text = (name: string): string | undefined => headers[name]?.toString();
      const peer = socket.remoteAddress ?? '';
      last = {
        id: agent.slice(PROBE_AGENT.length, PROBE_AGENT.length + 36),
        host: headers.host ?? '',
        is_own_host: isOwnHost(headers.host ?? ''),
        peer,
        is_trusted_peer: isTrusted(peer),
        client: clientOf({ peer, header: text }),
        forwarded_for: text('x-forwarded-for') ?? null,
        forwarded_proto: text('x-forwarded-proto') ?? null,
      };
    },
    last: () => last,
  };
}
