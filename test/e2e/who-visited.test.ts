import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeInBrowser, startBrowser } from '../support/browser.ts';
import type { Called, CallOptions } from '../support/call.ts';
import { type CustomerSite, startCustomerSite } from '../support/customer-site.ts';
import { eventually } from '../support/eventually.ts';
import type { Service } from '../support/service.ts';
import { startServiceOnDatabase } from '../support/service-on-database.ts';

/** An address of the sample directory: Google, in the United States. */
const VISITOR = '8.8.8.8';
/** From the response of a capture to its session in the feed, and from a page view to either. */
const SESSION_VISIBLE_MS = 2_000;
const ENRICHED_MS = 5_000;

let service: Service;
let site: CustomerSite;
let key: string;

beforeAll(async () => {
  [service, site] = await Promise.all([startServiceOnDatabase(), startCustomerSite()]);
  const made = await service.cli('key', 'create', '--partner', 'demo', '--name', 'website', '--json');
  expect(made.code, made.stderr).toBe(0);
  key = JSON.parse(made.stdout).api_key;
});
afterAll(async () => {
  await site?.close();
  await service?.remove();
});

const call = (method: string, path: string, options: CallOptions = {}) =>
  service.call(method, path, { key, ...options });

/** A tracker of the customer's site, as the API returns it on creation. */
const createTracker = async (): Promise<{ id: string; snippet: string }> => {
  const body = { name: 'A website', origins: [site.origin], customer_reference: 'customer-42' };
  const made = await call('POST', '/v1/trackers', { body });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return made.body;
};

/** What a browser on the site sends through a proxy on loopback, which the service trusts by default. */
const capture = (tracker_id: string, ip: string, custom: object): Promise<Called> =>
  service.call('POST', '/tracking/collect', {
    headers: { 'content-type': 'text/plain;charset=UTF-8', origin: site.origin, 'x-forwarded-for': ip },
    body: { tracker_id, token: randomUUID(), visit_id: randomUUID(), custom },
  });

const feedOf = (tracker: string) => call('GET', `/v1/sessions?tracker_id=${tracker}`);

describeInBrowser('a visitor with Chromium, on a page with the returned snippet', () => {
  it("a page view becomes a session in the feed within a moment, with the page's labels and no country", async () => {
    const { id, snippet } = await createTracker();
    const labelled = snippet.replace("data-custom='{}'", `data-custom='{"plan":"pro","seats":3}'`);
    expect(labelled).not.toBe(snippet);
    const page = site.page('/pricing', `${labelled}<h1>Pricing</h1>`);
    const browser = await startBrowser();
    try {
      await (await browser.newPage()).goto(page);
      const { body } = await eventually(
        'the session is in the feed',
        () => call('GET', '/v1/sessions'),
        (feed) => feed.body.sessions.some((session: { tracker_id: string }) => session.tracker_id === id),
        SESSION_VISIBLE_MS,
      );
      const [session] = (await feedOf(id)).body.sessions;
      expect(body.sessions).toContainEqual(session);
      expect(session).toEqual({
        session_id: expect.any(String),
        tracker_id: id,
        customer_reference: 'customer-42',
        custom: { plan: 'pro', seats: 3 },
        visitor_country: null,
        first_seen_at: expect.any(String),
        last_seen_at: session.first_seen_at,
        expires_at: expect.any(String),
      });
      const preview = await call('GET', `/v1/sessions/${session.session_id}`);
      expect({ ...preview.body, request_id: '' }).toEqual({ ...session, request_id: '' });
    } finally {
      await browser.close();
    }
  });
});

describe('a visitor from a public address', () => {
  let tracker: { id: string; snippet: string };
  let session: { session_id: string; visitor_country: string | null; custom: object };
  let receipt: Called['body'];
  /** The answers that the tracker's usage must count, by status. */
  const called: Called[] = [];
  const noted = async (answer: Promise<Called>): Promise<Called> => {
    called.push(await answer);
    return answer;
  };

  beforeAll(async () => {
    tracker = await createTracker();
  });

  it('is captured with a 204 and becomes a session with its country at once', async () => {
    const captured = await capture(tracker.id, VISITOR, { campaign: 'spring' });
    expect(captured.status).toBe(204);
    expect(captured.headers.get('access-control-allow-origin')).toBe(site.origin);
    const { body } = await noted(feedOf(tracker.id));
    expect(body.sessions).toHaveLength(1);
    session = body.sessions[0];
    expect(session).toMatchObject({ visitor_country: 'US', custom: { campaign: 'spring' } });
  });

  it('is revealed: 202, then a receipt with the company, which the same key returns again', async () => {
    const { session_id } = session;
    const headers = { 'idempotency-key': randomUUID() };
    const reveal = () => noted(call('POST', `/v1/sessions/${session_id}/reveal`, { headers }));
    const asked = await reveal();
    expect(asked.status, JSON.stringify(asked.body)).toBe(202);
    expect(asked.body).toMatchObject({ session_id, status: 'pending', result: null, billable_units: 0 });
    expect(asked.headers.get('location')).toBe(asked.body.status_url);
    const done = await eventually(
      'the reveal is complete',
      () => noted(call('GET', asked.body.status_url)),
      ({ status }) => status === 200,
      ENRICHED_MS,
    );
    receipt = done.body;
    expect(receipt).toMatchObject({
      reveal_id: asked.body.reveal_id,
      session_id,
      tracker_id: tracker.id,
      custom: { campaign: 'spring' },
      status: 'complete',
      billable: true,
      billable_units: 1,
      result: { match_type: 'company', company_found: true, company: { name: 'Google LLC' } },
    });
    const again = await reveal();
    expect(again.status).toBe(200);
    expect({ ...again.body, request_id: '' }).toEqual({ ...receipt, request_id: '' });
  });

  it('costs one unit: the audit finds it and no difference', async () => {
    const { code, stdout, stderr } = await service.cli('audit', 'billing', '--partner', 'demo', '--json');
    expect(code, stderr).toBe(0);
    const { units, months, differences } = JSON.parse(stdout);
    expect(differences).toEqual([]);
    expect(units).toBe(1);
    expect(months).toEqual([
      {
        month: receipt.completed_at.slice(0, 7),
        entries: 1,
        units: 1,
        head_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
  });

  it("counts in the key's and in the tracker's usage alike", async () => {
    const usage = (await call('GET', '/v1/usage')).body;
    const ofTracker = (await call('GET', `/v1/trackers/${tracker.id}/usage`)).body;
    expect(usage.reveals).toMatchObject({ billable_reveals: 1, completed_reveals: 1 });
    expect(usage.totals.requests).toBe(0);
    const complete = called.filter(({ status }) => status === 200);
    const company = complete.filter(({ body }) => body.result?.company_found === true);
    expect(ofTracker.totals).toEqual({
      capture_requests: 1,
      sessions: 1,
      api_requests: called.length,
      completed_responses: complete.length,
      company_responses: company.length,
      reveals: 1,
      billable_reveals: usage.reveals.billable_reveals,
    });
    expect(ofTracker.pending_reveals).toBe(0);
  });

  it('is neither captured nor revealed once the tracker is disabled, while earlier data stay', async () => {
    expect((await call('DELETE', `/v1/trackers/${tracker.id}`)).status).toBe(200);
    const late = await capture(tracker.id, VISITOR, {});
    expect([late.status, late.body.error.code]).toEqual([403, 'tracker_origin_denied']);
    const headers = { 'idempotency-key': randomUUID() };
    const refused = await call('POST', `/v1/sessions/${session.session_id}/reveal`, { headers });
    expect([refused.status, refused.body.error.code]).toEqual([409, 'tracker_disabled']);
    expect((await feedOf(tracker.id)).body.sessions).toHaveLength(1);
    expect((await call('GET', receipt.status_url)).status).toBe(200);
  });
});
