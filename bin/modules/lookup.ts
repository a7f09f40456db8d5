import { submitLookup } from '../../commands/lookup/submit-lookup.ts';
import type { Route } from '../../http/route.ts';
import { createFreshLookups, createInFlight, getLookupRoute } from '../../read-api/lookup/get-lookup.ts';
import { postLookupRoute } from '../../write-api/lookup/post-lookup.ts';
import type { ApiContext } from '../api-context.ts';
import { enrichmentCapacity } from './capacity.ts';

const SETTLED_MS = 1_000;

export const lookupRoutes = ({
  runtime,
  limiter,
  counter,
  clues,
  caughtUp,
  polled,
  ownWrite,
}: ApiContext): Route[] => {
  const { config, pool, store, intake, digest, processed } = runtime;
  const configured = () => runtime.providers.configured();
  const shared = {
    count: counter.count,
    cluesOf: clues.of,
    fresh: createFreshLookups({ note: runtime.lookupUses.note, configured }),
    inFlight: createInFlight(config.LOOKUP_CAPACITY),
  };
  const submitting = {
    store,
    digest,
    intake,
    configured,
    capacity: enrichmentCapacity(runtime, limiter),
    settlementsCaughtUp: async () => {
      await processed.reached(['settle-ended-work'], await store.head(), SETTLED_MS);
    },
  };
  return [
    postLookupRoute({
      ...shared,
      submit: (request, context) => submitLookup(submitting, request, context),
      projected: ownWrite(['lookups']),
    }),
    getLookupRoute({
      ...shared,
      pool,
      configured,
      caughtUp: caughtUp(['lookups']),
      hasCaughtUp: polled(['lookups']),
    }),
  ];
};
