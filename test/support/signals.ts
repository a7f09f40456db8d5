import { randomUUID } from 'node:crypto';
import { signalsIntake } from '../../bin/modules/signals.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import { startOpsServer } from '../../platform/telemetry/ops-server.ts';
import type { TestApi } from './api.ts';

/** An entry of `POST /signals`. */
export type SentSignal = Readonly<Record<string, unknown>>;

/** A valid entry, observed at an instant, with the given fields replaced. */
export const signal = (at: number, over: SentSignal = {}): SentSignal => ({
  event_id: randomUUID(),
  ip: '8.8.4.4',
  email_domain: 'acme.io',
  evidence: 'submitted',
  site: 'shop.acme-customer.com',
  installation_id: 'installation-1',
  page_run_id: randomUUID(),
  occurred_at: isoTime(at),
  ...over,
});

/** Sends a batch over an operations listener of its own. */
export const sendSignals = async (
  { runtime }: TestApi,
  signals: readonly SentSignal[],
): Promise<{ readonly status: number; readonly body: unknown }> => {
  const ops = await startOpsServer({
    host: '127.0.0.1',
    port: 0,
    registry: createMetrics().registry,
    readiness: () => ({ ready: true, problems: [] }),
    handlers: { 'POST /signals': signalsIntake(runtime) },
    log: { error: () => undefined },
  });
  const answer = await fetch(`http://127.0.0.1:${ops.port}/signals`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ signals }),
  });
  const body: unknown = await answer.json();
  await ops.close();
  return { status: answer.status, body };
};
