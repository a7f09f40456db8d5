import { describe, expect, it } from 'vitest';
import {
  type CatalogEntry,
  doorplateErrorCodes,
  type ErrorCode,
  lookupErrorCodes,
  refusal,
  statusOf,
  trackingErrorCodes,
  UNAVAILABLE_MESSAGE,
  webhookErrorCodes,
} from '../../http/errors/error-catalog.ts';

/** Written by hand, catalog by catalog (contract, Errors 1). */
const lookupAndUsage = {
  400: ['invalid_ip', 'invalid_query', 'invalid_json', 'invalid_body', 'invalid_range'],
  401: ['unauthorized'],
  404: ['not_requested', 'not_found'],
  405: ['method_not_allowed'],
  413: ['body_too_large'],
  414: ['uri_too_long'],
  415: ['unsupported_media_type', 'unsupported_encoding'],
  429: [
    'rate_limit',
    'api_rate_limit',
    'lookup_capacity',
    'pending_limit',
    'enrichment_limit',
    'enrichment_capacity',
  ],
  503: [
    'api_busy',
    'backend_unavailable',
    'backend_timeout',
    'submission_unconfirmed',
    'lookup_reconciliation_required',
    'usage_unavailable',
    'service_unavailable',
  ],
};
const trackersSessionsAndReveals = {
  400: [
    'invalid_origin',
    'invalid_tracker',
    'invalid_capture',
    'invalid_custom_parameters',
    'invalid_cursor',
    'invalid_idempotency_key',
  ],
  403: ['untrusted_collector', 'tracker_origin_denied'],
  404: ['tracker_not_found', 'session_not_found', 'reveal_not_found'],
  409: ['idempotency_conflict', 'tracker_disabled'],
  410: ['tracker_deleted', 'session_expired', 'reveal_expired'],
  429: ['tracking_capacity', 'tracker_limit'],
  503: ['tracking_unavailable', 'reveal_unconfirmed'],
};
const webhooks = {
  400: ['invalid_webhook', 'invalid_webhook_url', 'invalid_webhook_query'],
  404: ['webhook_not_found', 'webhook_delivery_not_found', 'tracker_not_found'],
  405: ['method_not_allowed'],
  409: ['webhook_disabled', 'webhook_rotation_pending'],
  410: ['webhook_event_expired'],
  429: ['webhook_limit', 'webhook_management_limit'],
  503: ['webhook_queue_full', 'webhooks_unavailable'],
};

const byStatus = (entries: readonly CatalogEntry[]) =>
  Object.fromEntries(
    [...Map.groupBy(entries, ({ status }) => status)].map(([status, of]) => [
      status,
      of.map(({ code }) => code),
    ]),
  );

const all = [...lookupErrorCodes, ...trackingErrorCodes, ...webhookErrorCodes];

describe('the error catalog', () => {
  it('has the 26 codes of lookup and usage and the 20 of trackers, sessions and reveals', () => {
    expect(byStatus(lookupErrorCodes)).toEqual(lookupAndUsage);
    expect(byStatus(trackingErrorCodes)).toEqual(trackersSessionsAndReveals);
  });

  it('has the 12 codes of webhooks, and two codes of the others with them', () => {
    for (const [status, codes] of Object.entries(webhooks)) {
      for (const code of codes) expect(statusOf(code as ErrorCode), code).toBe(Number(status));
    }
    const shared = ['tracker_not_found', 'method_not_allowed'];
    const own = Object.values(webhooks)
      .flat()
      .filter((code) => !shared.includes(code));
    expect(webhookErrorCodes.map(({ code }) => code)).toEqual(own);
  });

  it('counts 26, 20 and 12: 58 codes, none twice, and 4 of its own', () => {
    expect(
      [lookupErrorCodes, trackingErrorCodes, webhookErrorCodes, doorplateErrorCodes].map(
        (entries) => entries.length,
      ),
    ).toEqual([26, 20, 12, 4]);
    expect(new Set(all.map(({ code }) => code)).size).toBe(58);
  });
});

describe('a refusal', () => {
  const request = { id: '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11' };

  it.each([...all, ...doorplateErrorCodes])(
    '$code has the Error body and what its status demands',
    ({ status, code }) => {
      const answer = refusal(request, code);
      const { error, request_id } = JSON.parse(String(answer.body));

      expect([answer.status, answer.code, error.code, request_id]).toEqual([status, code, code, request.id]);
      expect(error.message === UNAVAILABLE_MESSAGE).toBe(status === 503);
      expect(answer.headers?.['retry-after'] !== undefined).toBe(status === 429 || status === 503);
      expect(answer.headers?.['www-authenticate'] !== undefined).toBe(status === 401);
    },
  );

  it('waits whole seconds, at least one', () => {
    const waits = [0, 0.2, 1.5, 40_000].map((retryAfter) =>
      refusal(request, 'enrichment_limit', { retryAfter }),
    );

    expect(waits.map(({ headers }) => headers?.['retry-after'])).toEqual(['1', '1', '2', '40000']);
    expect(refusal(request, 'api_busy').headers?.['retry-after']).toBe('5');
  });

  it('may say more than the catalog, except with 503', () => {
    const message = 'say "no"';
    const worded = (code: ErrorCode) =>
      JSON.parse(String(refusal(request, code, { message }).body)).error.message;

    expect(worded('invalid_tracker')).toBe(message);
    expect(worded('api_busy')).toBe(UNAVAILABLE_MESSAGE);
  });
});
