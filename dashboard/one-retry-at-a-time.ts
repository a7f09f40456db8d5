import type { DeliveryDeps } from './pages/deliveries.ts';

/** At least the time that a retry of many takes. */
const RETRY_SECONDS = 3;

/**
 * Refuses a partner's second retry of all while the first runs: the two would retry the same deliveries, each with fifty queries
 * and appends at once.
 */
export const oneRetryAtATime = ({ retryFailedSince }: DeliveryDeps): DeliveryDeps => {
  const running = new Set<string>();
  return {
    retryFailedSince: async (visit, webhookId, day) => {
      const { partner_id } = visit.user;
      if (running.has(partner_id)) return { retried: 0, all: false, refused: ALREADY_RUNNING };
      running.add(partner_id);
      try {
        return await retryFailedSince(visit, webhookId, day);
      } finally {
        running.delete(partner_id);
      }
    },
  };
};

const ALREADY_RUNNING = {
  ok: false,
  status: 429,
  code: 'retry_running',
  message: 'Failed deliveries are being retried already. Try again in a few seconds.',
  retryAfter: RETRY_SECONDS,
} as const;
