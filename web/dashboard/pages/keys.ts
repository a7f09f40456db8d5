import { isoTime } from '../../../domain/kernel/time.ts';
import type { KeyLimits } from '../../../domain/partners/events.ts';
import type { Reply } from '../../../http/contract/route.ts';
import {
  findKeyOf,
  findPartner,
  type KeyRow,
  listLatestKeys,
  type UsedKey,
  withUses,
} from '../../../queries/partners/partners.ts';
import type { KeyChanges } from '../../../write-api/partners/keys.ts';
import { commandOf, errorAnswer, isOwner, type PageContext, type Refused, textOf } from '../api.ts';
import * as ui from '../components.ts';
import { html } from '../components.ts';
import { show } from '../layout.ts';
import { action, type Done, type Found, resourceRoutes } from '../resource.ts';
import { get, type PageRoute, post } from '../routes.ts';

/** Those that the operator sets for keys made by the partner's users. */
type KeyCeilings = NonNullable<Awaited<ReturnType<typeof findPartner>>>;

/** The usual limits of a new key, as far as the ceilings allow. */
export const within = (usual: KeyLimits, ceilings: KeyCeilings): KeyLimits => ({
  ...usual,
  requests_per_second: Math.min(usual.requests_per_second, ceilings.requests_per_second),
  new_enrichments_per_day: usual.new_enrichments_per_day ?? ceilings.new_enrichments_per_day,
  pending_enrichments: Math.min(usual.pending_enrichments, ceilings.pending_enrichments),
});

const atMost = (ceiling: number): string => `At most ${ceiling}.`;

const limitFields = (limits: KeyLimits, ceilings: KeyCeilings) => html`<div class="row">
  ${ui.field('Requests a second', 'requests_per_second', { type: 'number', min: 1, value: numberText(limits.requests_per_second), required: true, hint: atMost(ceilings.requests_per_second) })}
  ${ui.field('New enrichments a day', 'new_enrichments_per_day', {
    type: 'number',
    min: 0,
    value: limits.new_enrichments_per_day === null ? '' : numberText(limits.new_enrichments_per_day),
    hint: `${ceilings.new_enrichments_per_day === null ? 'Empty: no limit.' : atMost(ceilings.new_enrichments_per_day)} 0: saved addresses only.`,
  })}
  ${ui.field('Pending enrichments', 'pending_enrichments', { type: 'number', min: 0, value: numberText(limits.pending_enrichments), required: true, hint: `Of all keys together. ${atMost(ceilings.pending_enrichments)}` })}
  ${ui.field('Expires', 'expires_at', { type: 'datetime-local', value: minuteOf(limits.expires_at), hint: 'UTC. Empty: never.' })}</div>
  ${(ceilings.company_signals || limits.company_signals) && ui.checkbox('Answers carry company signals', 'company_signals', 'yes', limits.company_signals)}`;

const minuteOf = (expiresAt: string | null): string => expiresAt?.slice(0, 16) ?? '';

const FEW = 10;

const numberText = (value: number): string => (Number.isNaN(value) ? '' : String(value));

/** Parses the form; the command refuses NaN and an impossible time. */
function limitsIn(page: PageContext): KeyLimits {
  const cap = textOf(page, 'new_enrichments_per_day');
  const expires = textOf(page, 'expires_at');
  return {
    requests_per_second: wholeIn(page, 'requests_per_second'),
    new_enrichments_per_day: cap === '' ? null : wholeIn(page, 'new_enrichments_per_day'),
    pending_enrichments: wholeIn(page, 'pending_enrichments'),
    company_signals: page.form.get('company_signals') === 'yes',
    // Browsers omit seconds of zero.
    expires_at: expires === '' ? null : `${expires}${expires.length === 16 ? ':00' : ''}Z`,
  };
}

function wholeIn(page: PageContext, name: string): number {
  const text = textOf(page, name);
  return /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
}

const PATH = '/dashboard/keys';

const MISSING = errorAnswer(404, 'key_not_found', 'There is no such key.');

export const keyPages = (changes: KeyChanges): PageRoute[] => [
  get(PATH, (page) => list(page)),
  get(`${PATH}/new`, (page) => createPage(changes, page), { needs: 'owner' }),
  post(PATH, 'owner', (page) => create(changes, page), { needsProof: true }),
  ...resourceRoutes<UsedKey>({
    path: `${PATH}/:key_id`,
    find,
    missing: (page, why) => list(page, why),
    show: showKey,
    actions: [
      action('', 'owner', (page) => update(changes, page), 'key-updated', {
        needsProof: true,
        leadsTo: PATH,
      }),
      action('revoke', 'owner', (page) => revoke(changes, page), 'key-revoked', {
        needsProof: true,
        ask: askRevoke,
        leadsTo: PATH,
      }),
    ],
  }),
];

function askRevoke(page: PageContext, key: UsedKey) {
  return {
    title: `Revoke the key “${key.name}”?`,
    section: 'Keys',
    text: html`<p>Calls with this key are refused within a second. The key cannot be brought back. It was last used
        ${page.time(key.used_at)}.</p>`,
    button: 'Revoke the key',
    back: PATH,
  } as const;
}

const revoke = (changes: KeyChanges, page: PageContext): Promise<Done> =>
  changes.revoke(page.user.partner_id, page.request.params.key_id ?? '', commandOf(page));

async function find({ user, reads, request }: PageContext): Promise<Found<UsedKey>> {
  const key = await findKeyOf(reads.db, user.partner_id, request.params.key_id ?? '');
  const [used] = key === null ? [] : await withUses(reads.db, [key]);
  return used === undefined ? MISSING : { ok: true, body: used };
}

/** Reads the ceilings of the user's account. */
export async function ceilingsOf({ reads, user }: PageContext): Promise<KeyCeilings> {
  const partner = await findPartner(reads.db, user.partner_id);
  if (partner === null) throw new TypeError('the partner of a logged-in user does not exist');
  return partner;
}

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const { reads, user, request } = page;
  const listed = await listLatestKeys(reads.db, user.partner_id, isoTime(request.receivedAt));
  const keys = await withUses(reads.db, listed);
  const shown = ui.searched(page, keys, ({ name, key_id }) => `${name} ${key_id}`);
  return show(page, {
    title: 'Keys',
    section: 'Keys',
    refused,
    pickers: keys.length > FEW && ui.searchForm(page),
    actions: isOwner(page) && html`<a class="button" href="${PATH}/new">Create a key</a>`,
    content: html`${ui.tableOr(
      keys.length > 0
        ? ui.noMatch(PATH)
        : ui.nothingYet(
            'No keys yet',
            'Your servers call the API with a key, which an owner of the team creates.',
          ),
      ui.counted(shown.length, 'API key'),
      ['Key', 'State', 'Last used', 'Requests a second', 'New enrichments a day', 'Expires'],
      shown.map((key) => [
        html`<a href="${PATH}/${key.key_id}">${key.name}</a>`,
        stateOf(key, page),
        page.ago(key.used_at),
        ui.count(key.requests_per_second),
        key.new_enrichments_per_day === null ? 'no limit' : ui.count(key.new_enrichments_per_day),
        page.time(key.expires_at),
      ]),
      { numeric: [3, 4], isWhole: true },
    )}
    <p class="soft">${!isOwner(page) && 'Owners of the team create and change keys. '}<a href="/dashboard/usage">Which key uses what</a></p>`,
  });
}

async function createPage(
  { usualLimits }: KeyChanges,
  page: PageContext,
  refused: Refused = null,
): Promise<Reply> {
  const ceilings = await ceilingsOf(page);
  return show(page, {
    title: 'Create a key',
    section: 'Keys',
    up: [PATH, 'Keys'],
    refused,
    content: html`<section class="panel">${ui.form(
      page,
      PATH,
      html`${ui.field('Name', 'name', { value: textOf(page, 'name'), required: true, maxlength: 100, hint: 'What uses it: “billing server”, for example.' })}
      <h2>Limits</h2>
      ${limitFields(refused ? limitsIn(page) : within(usualLimits, ceilings), ceilings)}${ui.proofField(page)}<button>Create the key</button>`,
    )}
    <p class="soft">Your account can have ${ui.counted(ceilings.keys, 'active key')}.</p></section>`,
  });
}

function stateOf({ revoked_at, expires_at }: KeyRow, { request }: PageContext) {
  if (revoked_at !== null) return ui.badge('revoked', 'off');
  if (expires_at !== null && Date.parse(expires_at) <= request.receivedAt) return ui.badge('expired', 'off');
  return ui.badge('active', 'good');
}

async function create(changes: KeyChanges, page: PageContext): Promise<Reply> {
  const name = textOf(page, 'name');
  const made = await changes.create(page.user.partner_id, name, limitsIn(page), commandOf(page));
  if (!made.ok) return createPage(changes, page, made);
  return show(page, {
    title: 'Your new key',
    section: 'Keys',
    status: 201,
    content: html`${ui.secretOnce(`Key “${name}”`, made.api_key)}
      <p><a class="button" href="${PATH}">I have kept it</a></p>`,
  });
}

async function showKey(page: PageContext, key: UsedKey, refused: Refused): Promise<Reply> {
  const ceilings = await ceilingsOf(page);
  return show(page, {
    title: key.name,
    section: 'Keys',
    up: [PATH, 'Keys'],
    state: stateOf(key, page),
    refused,
    content: html`<p class="soft"><code>${key.key_id}</code>, created ${page.time(key.created_at)}, last used ${page.time(key.used_at)}.</p>
    ${
      !isOwner(page)
        ? limitFacts(page, key)
        : key.revoked_at === null
          ? html`${ui.panel('Limits', ui.form(page, `${PATH}/${key.key_id}`, html`${limitFields(refused ? limitsIn(page) : key, ceilings)}${ui.proofField(page)}<button>Change the limits</button>`))}
          <section class="panel danger"><h2>Revoke</h2><p>Ends the key for ever.</p>
          <p><a class="button danger" href="${PATH}/${key.key_id}/revoke">Revoke the key…</a></p></section>`
          : html`<p>Revoked ${page.time(key.revoked_at)}.</p>`
    }`,
  });
}

/** What a user sees who may not change it. */
const limitFacts = (page: PageContext, key: KeyRow) =>
  ui.facts([
    ['Requests a second', ui.count(key.requests_per_second)],
    [
      'New enrichments a day',
      key.new_enrichments_per_day === null ? 'no limit' : ui.count(key.new_enrichments_per_day),
    ],
    ['Pending enrichments', ui.count(key.pending_enrichments)],
    ['Expires', page.time(key.expires_at)],
  ]);

async function update(changes: KeyChanges, page: PageContext): Promise<Done> {
  const found = await find(page);
  if (!found.ok) return found;
  const { key_id, expires_at } = found.body;
  const given = limitsIn(page);
  // The field has no seconds: if it is unchanged, the key's own time stays.
  const untouched = textOf(page, 'expires_at') === minuteOf(expires_at);
  const limits = untouched ? { ...given, expires_at } : given;
  return changes.update(page.user.partner_id, key_id, limits, commandOf(page));
}
