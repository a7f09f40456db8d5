import { SAVED_ADDRESS, savedAnswer } from '../rows/saved-lookups.ts';
import type { WebhookSink } from './bare-deliveries.ts';
import type { Bench } from './bench.ts';
import type { Cluster } from './cluster.ts';
import type { LoadPlan } from './load-plan.ts';
import { createRevealable, createTracker, VISITORS } from './tracking.ts';
import { createEndpoint } from './webhooks.ts';

const ADDRESSES = 1_000_000;

type Requests = LoadPlan['requests'];

/** An operation at a rate per second. */
export interface Kind {
  readonly name: string;
  /** Makes requests for a load of `count`. */
  readonly requests: (count: number) => Requests | Promise<Requests>;
  readonly expect: number;
  /** The server that gets it. Default: the API. */
  readonly port?: number;
  /** Its highest rate. */
  readonly most?: number;
}

/** The reference of all kinds. */
export const INSERT: Kind = { name: 'insert', requests: () => ({ of: 'inserts' }), expect: 204 };

/** Creates what the kinds need: a saved result, trackers, an endpoint and sessions. */
export const prepareKinds = async (
  bench: Bench,
  product: Cluster,
  sink: WebhookSink,
): Promise<readonly Kind[]> => {
  await savedAnswer(product);
  const { keys } = product;
  const [key = '', ofDeliveries = ''] = keys;
  const tracker = await createTracker(product);
  const delivered = await createTracker({ ...product, keys: [ofDeliveries] });
  await createEndpoint(product, ofDeliveries, sink.urls[0] ?? '', delivered);
  const addresses = () => bench.freshAddresses(ADDRESSES);
  const beginSessions = await createRevealable(product, bench.freshAddresses(VISITORS));
  return [
    {
      name: 'saved lookup',
      requests: () => ({ of: 'lookups', method: 'GET', keys: [key], address: { same: SAVED_ADDRESS } }),
      expect: 200,
    },
    {
      name: 'submission, enriched',
      requests: () => ({ of: 'lookups', method: 'POST', keys: [key], address: { first: addresses() } }),
      expect: 202,
      most: 100,
    },
    { name: 'capture', requests: () => ({ of: 'captures', tracker, first: addresses() }), expect: 204 },
    {
      name: 'reveal',
      requests: async (count) => ({ of: 'reveals', key, sessions: await beginSessions(count) }),
      expect: 200,
      most: 100,
    },
    {
      name: 'capture, delivered to one endpoint',
      requests: () => ({ of: 'captures', tracker: delivered, first: addresses() }),
      expect: 204,
      most: 100,
    },
    {
      name: 'clue',
      requests: () => ({ of: 'clues', first: addresses() }),
      expect: 202,
      port: Number(product.service.env.OPS_PORT),
      most: 100,
    },
    {
      name: 'feed page of 10',
      requests: () => ({ of: 'pages', key, paths: [`/v1/sessions?tracker_id=${tracker}&limit=10`] }),
      expect: 200,
    },
  ];
};
