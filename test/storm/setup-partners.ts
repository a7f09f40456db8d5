import { call } from '../support/call.ts';
import { webhooksOf } from '../support/webhook-sink.ts';
import { PAGE } from './load/visits.ts';
import { newPartner, type Partner } from './partners.ts';
import type { StormProcess } from './processes.ts';
import type { Stack } from './stack.ts';

const PARTNERS = 2;

export const createPartners = async (stack: Stack, prefix: string): Promise<Partner[]> => {
  const [api] = stack.api;
  if (api === undefined) throw new Error('no api process');
  const numbers = Array.from({ length: PARTNERS }, (_, index) => index + 1);
  return Promise.all(numbers.map((n) => createPartner(stack, api, `${prefix}-${n}`)));
};

export const createPartner = async (stack: Stack, api: StormProcess, name: string): Promise<Partner> => {
  await commandJson(api, 'partner', 'create', name);
  const made = await commandJson(
    api,
    ...['key', 'create', '--partner', name, '--name', 'storm'],
    ...['--requests-per-second', '100000', '--pending-enrichments', '1000000'],
  );
  const { api_key: key, partner_id: partnerId } = made as { api_key: string; partner_id: string };
  const request = (method: string, path: string, options = {}) => call(api.url, method, path, options);
  const tracker = await request('POST', '/v1/trackers', { key, body: { name: 'a site', origins: [PAGE] } });
  if (tracker.status !== 201)
    throw new Error(`no tracker: ${tracker.status} ${JSON.stringify(tracker.body)}`);
  const webhook = await webhooksOf({ call: request }, key).create(stack.webhookUrl(partnerId), null);
  return newPartner({ partnerId, key, trackerId: tracker.body.id, webhook });
};

const commandJson = async (api: StormProcess, ...args: string[]): Promise<unknown> => {
  const { code, stdout, stderr } = await api.cli(...args, '--json');
  if (code !== 0) throw new Error(`doorplate ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
};
