/** Webhook receivers on this machine, and partners that register them with a product in a separate process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { type Certificate, makeAuthority } from './certificates.ts';
import type { Environment } from './doorplate.ts';
import { eventually } from './eventually.ts';
import type { Received } from './receiver.ts';
import type { Service } from './service.ts';

export interface AllowedReceivers {
  readonly tls: Certificate;
  /** The configuration that allows deliveries to these ports of 127.0.0.1 and to no other loopback address. */
  readonly env: Environment;
  remove(): void;
}

/** `names`: further names of the receivers beside 127.0.0.1. */
export const allowReceivers = async (
  ports: readonly number[],
  names: readonly string[] = [],
): Promise<AllowedReceivers> => {
  const authority = await makeAuthority();
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-test-ca-'));
  const file = join(folder, 'ca.pem');
  writeFileSync(file, authority.cert);
  return {
    tls: await authority.issue(['127.0.0.1', ...names]),
    env: {
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32',
      WEBHOOK_ALLOW_PORTS: ports.join(','),
      WEBHOOK_EXTRA_CA_FILE: file,
      WEBHOOKS_PER_PARTNER: '100',
      WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};

export interface SentEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The event in a request, after its signature is verified with this secret. @throws when it is invalid */
export const verified = ({ headers, body }: Received, secret: string): SentEvent => {
  const event = new Webhook(secret).verify(body, headers as Record<string, string>) as SentEvent;
  if (event.id !== headers['webhook-id']) throw new Error(`${headers['webhook-id']} holds ${event.id}`);
  return event;
};

export interface TestWebhook {
  readonly id: string;
  readonly signing_secret: string;
}

/** A delivery as the history shows it. */
export interface ShownDelivery {
  readonly id: string;
  readonly event_id: string;
  readonly type: string;
  readonly state: string;
  readonly attempts: number;
  readonly last_attempt_at: string | null;
  readonly delivered_at: string | null;
  readonly next_attempt_at: string | null;
  readonly http_status: number | null;
  readonly error: string | null;
  readonly event?: SentEvent | null;
}

/** A partner's webhook requests, by its key. */
export const webhooksOf = ({ call }: Pick<Service, 'call'>, key: string) => {
  const ask = async (method: string, path: string, expected: number, body?: object) => {
    const answer = await call(method, `/v1/webhooks${path}`, { key, ...(body && { body }) });
    if (answer.status === expected) return answer.body;
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  const delivery = (webhook: string, id: string): Promise<ShownDelivery> =>
    ask('GET', `/${webhook}/deliveries/${id}`, 200);
  return {
    ask,
    delivery,
    create: (url: string, tracker_id: string | null, events = ['session.created', 'reveal.completed']) =>
      ask('POST', '', 201, { name: 'receiver', url, tracker_id, events }) as Promise<TestWebhook>,
    sendTest: ({ id }: TestWebhook): Promise<{ delivery_id: string; event_id: string }> =>
      ask('POST', `/${id}/test`, 202, {}),
    totals: async ({ id }: TestWebhook): Promise<Record<string, number>> =>
      (await ask('GET', `/${id}`, 200)).deliveries,
    history: async ({ id }: TestWebhook): Promise<ShownDelivery[]> => {
      const shown: ShownDelivery[] = [];
      for (let query = ''; ; ) {
        const page = await ask('GET', `/${id}/deliveries${query}`, 200);
        shown.push(...page.deliveries);
        if (!page.has_more) return shown;
        query = `?cursor=${page.next_cursor}`;
      }
    },
    /** Waits until a delivery fulfils the condition. */
    becomes: (
      what: string,
      { id }: TestWebhook,
      deliveryId: string,
      isSo: (shown: ShownDelivery) => boolean,
    ): Promise<ShownDelivery> => eventually(what, () => delivery(id, deliveryId), isSo, 20_000, 50),
  };
};
export type PartnerWebhooks = ReturnType<typeof webhooksOf>;
