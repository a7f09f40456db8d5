import type { Reply } from '../../../http/contract/route.ts';
import { redirectAfterPost } from '../answers.ts';
import { type ErrorAnswer, isOwner, type Refused, textOf, type Visit } from '../api.ts';
import {
  badge,
  checkbox,
  count,
  counted,
  facts,
  field,
  form,
  html,
  noMatch,
  nothingYet,
  proofField,
  searched,
  searchForm,
  secretOnce,
  tableOr,
} from '../components.ts';
import { ask, show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

interface KeyLimitValues {
  readonly requests_per_second: number;
  readonly new_enrichments_per_day: number | null;
  readonly pending_enrichments: number;
  readonly company_signals: boolean;
  readonly expires_at: string | null;
}

/** `new_enrichments_per_day` null: no ceiling. */
interface KeyCeilings extends Omit<KeyLimitValues, 'expires_at'> {
  /** Keys that are neither revoked nor expired. */
  readonly keys: number;
}

/** The usual limits of a new key, as far as the ceilings allow. */
const within = (usual: KeyLimitValues, ceilings: KeyCeilings): KeyLimitValues => ({
  ...usual,
  requests_per_second: Math.min(usual.requests_per_second, ceilings.requests_per_second),
  new_enrichments_per_day: usual.new_enrichments_per_day ?? ceilings.new_enrichments_per_day,
  pending_enrichments: Math.min(usual.pending_enrichments, ceilings.pending_enrichments),
});

const atMost = (ceiling: number): string => `At most ${ceiling}.`;

const limitFields = (limits: KeyLimitValues, ceilings: KeyCeilings) => html`
  ${field('Requests a second', 'requests_per_second', { type: 'number', min: 1, value: numberText(limits.requests_per_second), required: true, hint: atMost(ceilings.requests_per_second) })}
  ${field('New enrichments a day', 'new_enrichments_per_day', {
    type: 'number',
    min: 0,
    value: limits.new_enrichments_per_day === null ? '' : numberText(limits.new_enrichments_per_day),
    hint: `${ceilings.new_enrichments_per_day === null ? 'Empty: no cap.' : atMost(ceilings.new_enrichments_per_day)} 0: saved addresses only.`,
  })}
  ${field('Pending enrichments', 'pending_enrichments', { type: 'number', min: 0, value: numberText(limits.pending_enrichments), required: true, hint: `Unfinished ones of all keys together. ${atMost(ceilings.pending_enrichments)}` })}
  ${field('Expires', 'expires_at', { type: 'datetime-local', value: minuteOf(limits.expires_at), hint: 'UTC. Empty: never.' })}
  ${(ceilings.company_signals || limits.company_signals) && checkbox('Answers carry company signals', 'company_signals', 'yes', limits.company_signals)}`;

const minuteOf = (expiresAt: string | null): string => expiresAt?.slice(0, 16) ?? '';

const FEW = 10;

const numberText = (value: number): string => (Number.isNaN(value) ? '' : String(value));

/** Parses the form; the command refuses NaN and an impossible time. */
function limitsIn(visit: Visit): KeyLimitValues {
  const cap = textOf(visit, 'new_enrichments_per_day');
  const expires = textOf(visit, 'expires_at');
  return {
    requests_per_second: wholeIn(visit, 'requests_per_second'),
    new_enrichments_per_day: cap === '' ? null : wholeIn(visit, 'new_enrichments_per_day'),
    pending_enrichments: wholeIn(visit, 'pending_enrichments'),
    company_signals: visit.form.get('company_signals') === 'yes',
    // Browsers omit seconds of zero.
    expires_at: expires === '' ? null : `${expires}${expires.length === 16 ? ':00' : ''}Z`,
  };
}

function wholeIn(visit: Visit, name: string): number {
  const text = textOf(visit, name);
  return /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
}

export interface DashboardKey extends KeyLimitValues {
  readonly key_id: string;
  readonly name: string;
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly used_at: string | null;
}

export interface KeyDeps {
  /** The keys that can be used, and those that were revoked or expired last. */
  readonly list: (partnerId: string) => Promise<readonly DashboardKey[]>;
  readonly find: (partnerId: string, keyId: string) => Promise<DashboardKey | null>;
  readonly create: (
    visit: Visit,
    key: { readonly name: string; readonly limits: KeyLimitValues },
  ) => Promise<{ readonly ok: true; readonly api_key: string } | ErrorAnswer>;
  readonly update: (
    visit: Visit,
    keyId: string,
    limits: KeyLimitValues,
  ) => Promise<{ readonly ok: true } | ErrorAnswer>;
  readonly revoke: (visit: Visit, keyId: string) => Promise<{ readonly ok: true } | ErrorAnswer>;
  readonly usualLimits: KeyLimitValues;
  /** The ceilings that the operator sets for keys made by the partner's users. */
  readonly ceilingsOf: (partnerId: string) => Promise<KeyCeilings>;
}

const PATH = '/dashboard/keys';

export const keyPages = (deps: KeyDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => list(deps, visit) },
  { method: 'POST', path: PATH, needs: 'owner', needsProof: true, handle: (visit) => create(deps, visit) },
  { method: 'GET', path: `${PATH}/:key_id`, handle: (visit) => one(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/:key_id`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => update(deps, visit),
  },
  {
    method: 'GET',
    path: `${PATH}/:key_id/revoke`,
    needs: 'owner',
    handle: (visit) => askRevoke(deps, visit),
  },
  {
    method: 'POST',
    path: `${PATH}/:key_id/revoke`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => revoke(deps, visit),
  },
];

async function list(
  { list, usualLimits, ceilingsOf }: KeyDeps,
  visit: Visit,
  refused: Refused = null,
): Promise<Reply> {
  const { partner_id } = visit.user;
  const [keys, ceilings] = await Promise.all([list(partner_id), ceilingsOf(partner_id)]);
  const shown = searched(visit, keys, ({ name, key_id }) => `${name} ${key_id}`);
  return show(visit, {
    title: 'Keys',
    section: 'Keys',
    refused,
    content: html`${keys.length > FEW && searchForm(visit)}
    ${tableOr(
      keys.length > 0
        ? noMatch(PATH)
        : nothingYet(
            'No keys yet',
            'Your servers call the API with a key, which an owner of the team creates.',
          ),
      counted(shown.length, 'API key'),
      ['Name', 'State', 'Requests a second', 'New enrichments a day', 'Last used', 'Expires', 'Created'],
      shown.map((key) => [
        html`<a href="${PATH}/${key.key_id}">${key.name}</a>`,
        stateOf(key, visit),
        count(key.requests_per_second),
        key.new_enrichments_per_day === null ? 'no cap' : count(key.new_enrichments_per_day),
        visit.ago(key.used_at),
        visit.time(key.expires_at),
        visit.time(key.created_at),
      ]),
      { numeric: [2, 3] },
    )}
    <p><a href="/dashboard/usage">Which key uses what</a></p>
    ${
      !isOwner(visit)
        ? html`<p>Owners of the team create and change keys.</p>`
        : html`<section class="panel"><h2>Create a key</h2>
    <p>A partner can have ${counted(ceilings.keys, 'active key')}.</p>${form(
      visit,
      PATH,
      html`${field('Name', 'name', { value: textOf(visit, 'name'), required: true, maxlength: 100, hint: 'What uses it: “billing server”, for example.' })}
      ${limitFields(refused ? limitsIn(visit) : within(usualLimits, ceilings), ceilings)}${proofField(visit)}<button>Create the key</button>`,
    )}</section>`
    }`,
  });
}

function stateOf({ revoked_at, expires_at }: DashboardKey, { request }: Visit) {
  if (revoked_at !== null) return badge('revoked', 'off');
  if (expires_at !== null && Date.parse(expires_at) <= request.receivedAt) return badge('expired', 'off');
  return badge('active', 'good');
}

async function create(deps: KeyDeps, visit: Visit): Promise<Reply> {
  const name = textOf(visit, 'name');
  const made = await deps.create(visit, { name, limits: limitsIn(visit) });
  if (!made.ok) return list(deps, visit, made);
  return show(visit, {
    title: 'Your new key',
    section: 'Keys',
    status: 201,
    content: html`${secretOnce(`Key “${name}”`, made.api_key)}
      <p><a class="button" href="${PATH}">I have kept it</a></p>`,
  });
}

const find = ({ find }: KeyDeps, { user, request }: Visit): Promise<DashboardKey | null> =>
  find(user.partner_id, request.params.key_id ?? '');

const missing = (deps: KeyDeps, visit: Visit): Promise<Reply> =>
  list(deps, visit, { ok: false, status: 404, code: 'key_not_found', message: 'There is no such key.' });

async function one(deps: KeyDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const key = await find(deps, visit);
  if (key === null) return missing(deps, visit);
  const ceilings = await deps.ceilingsOf(visit.user.partner_id);
  return show(visit, {
    title: `Key “${key.name}”`,
    section: 'Keys',
    refused,
    content: html`<p>${stateOf(key, visit)} <code>${key.key_id}</code>, created ${visit.time(key.created_at)}, last used ${visit.time(key.used_at)}.</p>
    ${
      !isOwner(visit)
        ? limitFacts(visit, key)
        : key.revoked_at === null
          ? html`${form(visit, `${PATH}/${key.key_id}`, html`${limitFields(refused ? limitsIn(visit) : key, ceilings)}${proofField(visit)}<button>Change the limits</button>`)}
          <section><h2>Revoke</h2><p>Ends the key for ever.
          <a class="button danger" href="${PATH}/${key.key_id}/revoke">Revoke the key…</a></p></section>`
          : html`<p>Revoked ${visit.time(key.revoked_at)}.</p>`
    }
    <p><a href="${PATH}">All keys</a></p>`,
  });
}

/** What a user sees who may not change it. */
const limitFacts = (visit: Visit, key: DashboardKey) =>
  facts([
    ['Requests a second', count(key.requests_per_second)],
    [
      'New enrichments a day',
      key.new_enrichments_per_day === null ? 'no cap' : count(key.new_enrichments_per_day),
    ],
    ['Pending enrichments', count(key.pending_enrichments)],
    ['Expires', visit.time(key.expires_at)],
  ]);

async function update(deps: KeyDeps, visit: Visit): Promise<Reply> {
  const key = await find(deps, visit);
  if (key === null) return missing(deps, visit);
  const given = limitsIn(visit);
  // The field has no seconds: if it is unchanged, the key's own time stays.
  const untouched = textOf(visit, 'expires_at') === minuteOf(key.expires_at);
  const limits = untouched ? { ...given, expires_at: key.expires_at } : given;
  const updated = await deps.update(visit, key.key_id, limits);
  return updated.ok ? redirectAfterPost(PATH, 'key-updated') : one(deps, visit, updated);
}

async function askRevoke(deps: KeyDeps, visit: Visit): Promise<Reply> {
  const key = await find(deps, visit);
  if (key === null) return missing(deps, visit);
  return ask(visit, {
    title: `Revoke the key “${key.name}”?`,
    section: 'Keys',
    text: html`<p>Whoever calls with it is refused within a second. It cannot be brought back. It was last used
        ${visit.time(key.used_at)}.</p>`,
    action: `${PATH}/${key.key_id}/revoke`,
    button: 'Revoke the key',
    asksForProof: true,
    back: PATH,
  });
}

async function revoke(deps: KeyDeps, visit: Visit): Promise<Reply> {
  const key = await find(deps, visit);
  if (key === null) return missing(deps, visit);
  const revoked = await deps.revoke(visit, key.key_id);
  return revoked.ok ? redirectAfterPost(PATH, 'key-revoked') : one(deps, visit, revoked);
}
