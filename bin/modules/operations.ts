import type { DestinationPolicy } from '../../domain/webhooks/destination.ts';
import { conditionsOf } from '../../operations/conditions.ts';
import type { Config } from '../../platform/config/config.ts';
import { deliverAlerts } from '../../processors/operations/deliver-alerts.ts';
import { forgetAlerts, recordConditions } from '../../processors/operations/operator-alerts.ts';
import { destinationPolicy } from '../../processors/webhooks/delivery/addresses.ts';
import { type Sender, type SendResult, signatureHeaders } from '../../processors/webhooks/delivery/sender.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';
import { openSender } from './webhooks.ts';

const SECRET_PREFIX = 'whsec_';

/** The policy of partners' webhooks; where the operator allows it, private networks, HTTP and any port as well. */
function policyOf(config: Config, url: string): DestinationPolicy {
  const policy = destinationPolicy(config);
  if (!config.OPERATOR_WEBHOOK_ALLOW_PRIVATE) return policy;
  const { port } = new URL(url);
  return {
    ...policy,
    allowHttp: true,
    allowPorts: port === '' ? [] : [Number(port)],
    allowNetworks: ['0.0.0.0/0', '::/0'],
  };
}

/** The operator's webhook: nothing runs unless its URL is set. */
export function operationsWork({ runtime }: WorkerContext): WorkerModule {
  const { config, pool, clock, log } = runtime;
  const { OPERATOR_WEBHOOK_URL: url, OPERATOR_WEBHOOK_SECRET: secret } = config;
  if (url === undefined || secret === undefined) return {};
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const conditions = Map.groupBy(conditionsOf('webhook'), ({ isSlow }) => isSlow);
  // Opened by `start`, which no command calls.
  let sender: Sender | null = null;
  const post = async (alertId: string, body: Buffer): Promise<SendResult> => {
    if (sender === null) throw new TypeError('the sender is not open');
    const headers = signatureHeaders([key], alertId, clock.now(), body);
    return sender.send({ url, headers, body, partner_id: '' });
  };
  return {
    jobs: (signal) => [
      ['*/15 * * * * *', () => recordConditions(runtime, conditions.get(false) ?? [])],
      ['15 */5 * * * *', () => recordConditions(runtime, conditions.get(true) ?? [])],
      [
        '*/2 * * * * *',
        () =>
          deliverAlerts({
            pool,
            clock,
            log,
            post,
            retryBaseMs: config.RETRY_BASE_SECONDS * 1_000,
            random: Math.random,
            signal,
          }),
      ],
      ['33 4 * * *', () => forgetAlerts(pool, clock.now())],
    ],
    start: async () => {
      const opened = await openSender(runtime, policyOf(config, url), async () => false);
      sender = opened;
      return { stop: opened.close };
    },
  };
}
