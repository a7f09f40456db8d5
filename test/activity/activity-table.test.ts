import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import { DAY } from '../../domain/kernel/time.ts';
import type { EventMetadata, Position, RecordedEvent } from '../../event-store/port.ts';
import { createSlonik } from '../../platform/postgres/slonik.ts';
import { activity, forgetActivity } from '../../projections/activity/activity.ts';
import { type ActivityQuery, listActivity } from '../../queries/activity/activity.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let client: pg.Client;
let db: DatabasePool;
beforeAll(async () => {
  stack = await startTestStack();
  client = await stack.session('set search_path to read');
  db = await createSlonik(stack.url);
});
beforeEach(() => client.query('truncate activity'));
afterAll(async () => {
  await db.end();
  await stack.close();
});

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const partner_id = randomUUID();
const user_id = randomUUID();
const tracker_id = randomUUID();
const domain_id = randomUUID();
const webhook_id = randomUUID();
const reveal_id = randomUUID();
const at = new Date(NOW).toISOString();
const limits = {
  requests_per_second: 5,
  new_enrichments_per_day: null,
  pending_enrichments: 10,
  company_signals: true,
  expires_at: '2026-04-01T00:00:00.000Z',
};
const ofDomain = { domain_id, hostname: 'www.example.com' };
const ofEndpoint = { webhook_id, partner_id };
const secret = { master_key_id: 'm', sealed: 'SEALED' };
const entry = {
  partner_id,
  reveal_id,
  tracker_id,
  key_id: null,
  user_id,
  completed_at: '2026-02-01T00:00:00.000Z',
  units: 1,
  position: '1',
  previous: '0'.repeat(64),
  digest: '1'.repeat(64),
};

let position = 0;
const event = (type: string, data: object, by: Partial<EventMetadata> = {}): RecordedEvent => {
  position += 1;
  const metadata = { $correlationId: 'c', $causationId: 'c', at, partner_id, ...by };
  const id = randomUUID();
  return {
    id,
    type,
    data,
    metadata,
    stream: 'a',
    revision: position,
    position: BigInt(position) as Position,
  };
};

/** Each kind of activity once, with the actor, the action, the subject and the summary. */
const cases = (): (readonly [
  event: RecordedEvent,
  actor: string,
  action: string,
  of: string,
  summary: string,
])[] => {
  const byUser = { user_id };
  const byKey = { key_id: 'key_1' };
  const ofUser = { user_id: webhook_id, partner_id };
  const settings = {
    partner_id,
    requests_per_second: 50,
    new_enrichments_per_day: 7,
    pending_enrichments: 1,
  };
  return [
    [
      event('partners.PartnerCreated.v1', { partner_id, name: 'p', created_at: at }),
      'operator ',
      'partner.created',
      `partner ${partner_id}`,
      '',
    ],
    ...(['suspended', 'resumed', 'deleted'] as const).map((was) => {
      const name = `partners.Partner${was[0]?.toUpperCase()}${was.slice(1)}.v1`;
      const of = `partner ${partner_id}`;
      return [event(name, { partner_id, [`${was}_at`]: at }), 'operator ', `partner.${was}`, of, ''] as const;
    }),
    [
      event('partners.CeilingsSet.v1', {
        ...settings,
        keys: 3,
        domains: 2,
        company_signals: false,
        set_at: at,
      }),
      'operator ',
      'partner.ceilings_set',
      `partner ${partner_id}`,
      '50 requests a second, 7 new enrichments a day, 1 pending, 3 keys, 2 domains',
    ],
    [
      event(
        'partners.KeyCreated.v1',
        { ...limits, partner_id, key_id: 'key_2', name: 'k', hash: 'HASH', created_at: at },
        byUser,
      ),
      `user ${user_id}`,
      'key.created',
      'key key_2',
      '5 requests a second, any number of new enrichments a day, 10 pending, company signals, expires 2026-04-01',
    ],
    [
      event('partners.KeyUpdated.v1', { ...limits, partner_id, key_id: 'key_2', updated_at: at }),
      'operator ',
      'key.updated',
      'key key_2',
      expect.stringContaining('5 requests') as unknown as string,
    ],
    [
      event('partners.KeyRevoked.v1', { partner_id, key_id: 'key_2', revoked_at: at }, byUser),
      `user ${user_id}`,
      'key.revoked',
      'key key_2',
      '',
    ],
    [
      event('partners.UserCreated.v1', { ...ofUser, name: 'anna@example.com', created_at: at }),
      'operator ',
      'user.created',
      `user ${webhook_id}`,
      'owner',
    ],
    [
      event(
        'partners.RoleChanged.v1',
        { ...ofUser, before: 'owner', role: 'read-only', changed_at: at },
        byUser,
      ),
      `user ${user_id}`,
      'user.role_changed',
      `user ${webhook_id}`,
      'owner → read-only',
    ],
    [
      event(
        'partners.InvitationAccepted.v1',
        { user_id, partner_id, invitation_id: webhook_id, role: 'member', accepted_at: at },
        byUser,
      ),
      `user ${user_id}`,
      'invitation.accepted',
      `user ${user_id}`,
      'member',
    ],
    [
      event(
        'partners.InvitationMade.v1',
        {
          partner_id,
          invitation_id: webhook_id,
          role: 'member',
          made_by: user_id,
          note: 'Ben',
          digest: 'ab'.repeat(32),
          made_at: at,
          expires_at: at,
        },
        byUser,
      ),
      `user ${user_id}`,
      'invitation.made',
      `partner ${partner_id}`,
      'member',
    ],
    [
      event(
        'partners.InvitationWithdrawn.v1',
        { partner_id, invitation_id: webhook_id, role: 'member', withdrawn_at: at },
        byUser,
      ),
      `user ${user_id}`,
      'invitation.withdrawn',
      `partner ${partner_id}`,
      'member',
    ],
    [
      event('partners.SecondFactorEnabled.v1', { user_id, partner_id, enabled_at: at }, byUser),
      `user ${user_id}`,
      'user.second_factor_on',
      `user ${user_id}`,
      '',
    ],
    [
      event('partners.SecondFactorDisabled.v1', { user_id, partner_id, disabled_at: at }, byUser),
      `user ${user_id}`,
      'user.second_factor_off',
      `user ${user_id}`,
      '',
    ],
    [
      event('partners.RecoveryCodesRenewed.v1', { user_id, partner_id, renewed_at: at }, byUser),
      `user ${user_id}`,
      'user.recovery_codes',
      `user ${user_id}`,
      '',
    ],
    [
      event('partners.SecondFactorRequired.v1', { partner_id, required: true, changed_at: at }, byUser),
      `user ${user_id}`,
      'team.second_factor',
      `partner ${partner_id}`,
      'required',
    ],
    [
      event('partners.UserPasswordReset.v1', { ...ofUser, reset_at: at }),
      'operator ',
      'user.password_reset',
      `user ${webhook_id}`,
      '',
    ],
    [
      event('partners.UserPasswordChanged.v1', { user_id, partner_id, changed_at: at }),
      `user ${user_id}`,
      'user.password_changed',
      `user ${user_id}`,
      '',
    ],
    [
      event('partners.UserRemoved.v1', { ...ofUser, removed_at: at }, byUser),
      `user ${user_id}`,
      'user.removed',
      `user ${webhook_id}`,
      '',
    ],
    [
      event(
        'trackers.TrackerCreated.v1',
        {
          tracker_id,
          partner_id,
          name: 't',
          origins: ['https://a.example'],
          customer_reference: null,
          created_at: at,
        },
        byKey,
      ),
      'key key_1',
      'tracker.created',
      `tracker ${tracker_id}`,
      '1 website',
    ],
    [
      event(
        'trackers.TrackerUpdated.v1',
        {
          tracker_id,
          partner_id,
          name: 't',
          origins: ['https://a.example', 'https://b.example'],
          customer_reference: null,
          updated_at: at,
        },
        byKey,
      ),
      'key key_1',
      'tracker.updated',
      `tracker ${tracker_id}`,
      '2 websites',
    ],
    [
      event('trackers.TrackerDisabled.v1', { tracker_id, partner_id, disabled_at: at }, byKey),
      'key key_1',
      'tracker.disabled',
      `tracker ${tracker_id}`,
      '',
    ],
    [
      event('trackers.TrackerEnabled.v1', { tracker_id, partner_id, enabled_at: at }, byUser),
      `user ${user_id}`,
      'tracker.enabled',
      `tracker ${tracker_id}`,
      '',
    ],
    [
      event('trackers.TrackerDeleted.v1', { tracker_id, partner_id, deleted_at: at }, byUser),
      `user ${user_id}`,
      'tracker.deleted',
      `tracker ${tracker_id}`,
      '',
    ],
    [
      event('domains.DomainClaimed.v1', { ...ofDomain, tracker_id, partner_id, claimed_at: at }, byUser),
      `user ${user_id}`,
      'domain.added',
      `domain ${domain_id}`,
      'www.example.com',
    ],
    [
      event('domains.DomainActivated.v1', { ...ofDomain, activated_at: at }),
      'service ',
      'domain.activated',
      `domain ${domain_id}`,
      'www.example.com',
    ],
    [
      event('domains.DomainFailed.v1', { ...ofDomain, error: 'no_cname', failed_at: at }),
      'service ',
      'domain.failed',
      `domain ${domain_id}`,
      'www.example.com: no_cname',
    ],
    [
      event('domains.DomainReleased.v1', { ...ofDomain, tracker_id, released_at: at }, byKey),
      'key key_1',
      'domain.removed',
      `domain ${domain_id}`,
      'www.example.com',
    ],
    [
      event(
        'webhooks.EndpointCreated.v1',
        {
          ...ofEndpoint,
          name: 'w',
          url: 'https://hooks.example/SECRET',
          events: ['session.created'],
          tracker_id: null,
          secret,
          created_at: at,
        },
        byKey,
      ),
      'key key_1',
      'webhook.created',
      `webhook ${webhook_id}`,
      '“w”, session.created',
    ],
    [
      event(
        'webhooks.EndpointUpdated.v1',
        {
          ...ofEndpoint,
          name: 'w',
          events: ['session.created', 'reveal.completed'],
          enabled: false,
          updated_at: at,
        },
        byUser,
      ),
      `user ${user_id}`,
      'webhook.updated',
      `webhook ${webhook_id}`,
      '“w”, paused, session.created, reveal.completed',
    ],
    [
      event(
        'webhooks.SecretRotated.v1',
        { ...ofEndpoint, secret, rotated_at: at, rotation_until: at },
        byKey,
      ),
      'key key_1',
      'webhook.secret_rotated',
      `webhook ${webhook_id}`,
      '',
    ],
    [
      event(
        'webhooks.RecoveryRequested.v1',
        {
          ...ofEndpoint,
          ...{ recovery_id: webhook_id, since: at, deliveries: 663, held_back: true, requested_at: at },
        },
        byKey,
      ),
      'key key_1',
      'webhook.recovered',
      `webhook ${webhook_id}`,
      '663 deliveries',
    ],
    [
      event('webhooks.EndpointDeleted.v1', { ...ofEndpoint, deleted_at: at }, byUser),
      `user ${user_id}`,
      'webhook.deleted',
      `webhook ${webhook_id}`,
      '',
    ],
    [
      event('billing.AuditRequested.v1', { partner_id, requested_at: at }, byUser),
      `user ${user_id}`,
      'ledger.audited',
      `partner ${partner_id}`,
      '',
    ],
    [
      event('billing.RevealBilled.v1', entry),
      `user ${user_id}`,
      'reveal.completed',
      `reveal ${reveal_id}`,
      '1 unit',
    ],
  ];
};

const ask: ActivityQuery = {
  partnerId: partner_id,
  actor: null,
  subjectKind: null,
  since: null,
  until: null,
  before: null,
  limit: 100,
  now: NOW,
};
const rows = async () => (await client.query('select * from activity order by position')).rows;

describe('activity', () => {
  it('has a row for each change with who did it, applied twice, in one batch or one by one', async () => {
    const all = cases();
    const events = all.map(([one]) => one);
    await activity.apply(events, client);
    await activity.apply(events, client);
    const atOnce = await rows();
    expect(
      atOnce.map((row) => [
        `${row.actor_kind} ${row.actor_id}`,
        row.action,
        `${row.subject_kind} ${row.subject_id}`,
        row.summary,
      ]),
    ).toEqual(all.map(([, ...told]) => told));
    expect(atOnce.at(-1).at).toEqual(new Date(entry.completed_at));
    await client.query('truncate activity');
    for (const one of events) await activity.apply([one], client);
    expect(await rows()).toEqual(atOnce);
    expect(JSON.stringify(atOnce)).not.toMatch(/HASH|SEALED|SECRET|anna@example/);
  });

  it('passes over reveals of keys, names lost to another partner, and what is no change', async () => {
    await activity.apply(
      [
        event('billing.RevealBilled.v1', { ...entry, key_id: 'key_1', user_id: null }),
        event('domains.DomainFailed.v1', { ...ofDomain, error: 'claimed_elsewhere', failed_at: at }),
        event('domains.DomainActivated.v1', { ...ofDomain, activated_at: at }, {
          partner_id: undefined,
        } as object),
        event('sessions.SessionCreated.v1', {}),
      ],
      client,
    );
    expect(await rows()).toEqual([]);
  });

  it('tells all events of its contexts but these, so that a new one is thought of', () => {
    const told = new Set(activity.types);
    const contexts = /^(partners|trackers|domains|webhooks|billing)\./;
    const others = eventCatalogue
      .flatMap(({ events }) => Object.keys(events))
      .filter((type) => contexts.test(type) && !told.has(type));
    expect(others).toEqual([
      'partners.PartnerEnded.v1',
      'partners.PartnerSnapshotted.v1',
      'partners.UserReleased.v1',
      'partners.MemberRemoved.v1',
      'trackers.TrackersSnapshotted.v1',
      'trackers.TrackersSnapshotPart.v1',
      'webhooks.PayloadsExpired.v1',
      'billing.LedgerAnchored.v1',
      'webhooks.SecretsResealed.v1',
      'webhooks.RecoveryCompleted.v1',
      'webhooks.EndpointsSnapshotted.v1',
      'webhooks.PayloadStored.v1',
      'webhooks.DeliveryQueued.v1',
      'webhooks.DeliveryAttempted.v1',
      'webhooks.DeliveryRetried.v1',
      'webhooks.DeliveriesRetried.v1',
      'webhooks.DeliveriesExpired.v1',
      'domains.DomainLookChanged.v1',
      'domains.NameSnapshotted.v1',
      'domains.PlaceTaken.v1',
      'domains.PlaceFreed.v1',
      'domains.PlacesClosed.v1',
      'domains.PlacesSnapshotted.v1',
    ]);
    expect(
      cases()
        .map(([{ type }]) => type)
        .toSorted(),
    ).toEqual([...told].toSorted());
  });

  it('is listed by actor, subject and time, page by page, and no longer than 400 days', async () => {
    const events = cases().map(([one]) => one);
    await activity.apply(events, client);
    const actions = async (over: Partial<ActivityQuery>) =>
      (await listActivity(db, { ...ask, ...over })).map(({ action }) => action);
    expect(await actions({})).toHaveLength(events.length);
    const byUser = { kind: 'user', id: user_id };
    expect(await actions({ actor: byUser, subjectKind: 'key' })).toEqual(['key.revoked', 'key.created']);
    expect(await actions({ actor: { kind: 'key', id: 'key_1' }, subjectKind: 'domain' })).toEqual([
      'domain.removed',
    ]);
    expect(await actions({ subjectKind: 'reveal' })).toEqual(['reveal.completed']);
    expect(await actions({ until: NOW })).toEqual(['reveal.completed']);
    expect(await actions({ since: NOW, limit: 2 })).toEqual(['ledger.audited', 'webhook.deleted']);
    expect(await actions({ partnerId: randomUUID() })).toEqual([]);
    const seen: string[] = [];
    for (let before: ActivityQuery['before'] = null; ; ) {
      const page = await listActivity(db, { ...ask, before, limit: 5 });
      seen.push(...page.map((row) => row.position));
      const last = page.at(-1);
      if (last === undefined) break;
      before = last;
    }
    expect(seen).toEqual((await listActivity(db, ask)).map((row) => row.position));
    expect(await actions({ now: NOW + 380 * DAY })).not.toContain('reveal.completed');
    await forgetActivity(stack.pool, NOW + 380 * DAY);
    expect(await rows()).toHaveLength(events.length - 1);
  });

  it('reads little more than a page of a heavy partner, whatever the filter', async () => {
    await client.query(
      `insert into activity select n, $1, $2::timestamptz - n * interval '1 second', 'user', $3, 'key.updated',
              case n % 1000 when 0 then 'domain' else 'reveal' end, $3, ''
       from generate_series(1, 50000) n`,
      [partner_id, at, user_id],
    );
    await client.query('analyze activity');
    const filters = [
      '',
      `and actor_kind = 'user' and actor_id = '${user_id}'`,
      `and subject_kind = 'domain'`,
      `and actor_kind = 'user' and actor_id = '${user_id}' and subject_kind = 'domain'`,
      `and at < '2026-02-28T20:00:00Z'`,
    ];
    for (const filter of filters) {
      const plan = await planOf(
        client,
        `select * from read.activity where partner_id = $1 ${filter} order by at desc, position desc limit 51`,
        [partner_id],
      );
      expect(rowsRead(plan, 'activity'), filter).toBeLessThan(60);
    }
  });
});
