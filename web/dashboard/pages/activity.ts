import { isoTime } from '../../../domain/kernel/time.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { type ActivityQuery, type ActivityRow, listActivity } from '../../../queries/activity/activity.ts';
import { listActors } from '../../../queries/partners/partners.ts';
import { csvAnswer } from '../answers.ts';
import type { PageContext } from '../api.ts';
import { type Content, count, counted, html, nothingYet, pager, table } from '../components.ts';
import { type Page, show } from '../layout.ts';
import { periodPicker, picker } from '../pickers.ts';
import { get, type PageRoute } from '../routes.ts';
import { fileScope, linkTo } from '../scope.ts';
import { instantOf } from '../times.ts';

type Actor = NonNullable<ActivityQuery['actor']>;
type ActivityFilter = Pick<ActivityQuery, 'actor' | 'subjectKind' | 'since' | 'until'>;
type Cursor = ActivityQuery['before'];

const PATH = '/dashboard/activity';
const PAGE = 50;
const MAX_CSV = 10_000;

/** Pages of the changes: actor, action and time. */
export const activityPages: readonly PageRoute[] = [get(PATH, list), get(`${PATH}.csv`, csv)];

async function read(
  { reads, user, request }: PageContext,
  filter: ActivityFilter | null,
  before: Cursor,
  limit: number,
) {
  if (filter === null) return [];
  await reads.waitForHead(['activity', 'partners'])();
  const query = { ...filter, partnerId: user.partner_id, before, limit, now: request.receivedAt };
  return listActivity(reads.db, query);
}

const SUBJECTS: Readonly<Record<string, string>> = {
  key: 'Key',
  user: 'User',
  tracker: 'Website',
  domain: 'Custom domain',
  webhook: 'Webhook endpoint',
  reveal: 'Reveal',
  partner: 'Account',
};

const ACTIONS: Readonly<Record<string, string>> = {
  'partner.created': 'Account created',
  'partner.ceilings_set': 'Ceilings of the account changed',
  'partner.suspended': 'Account suspended',
  'partner.resumed': 'Account resumed',
  'partner.deleted': 'Account deleted',
  'key.created': 'Key created',
  'key.updated': 'Limits of a key changed',
  'key.revoked': 'Key revoked',
  'user.created': 'User created',
  'user.password_reset': 'Password reset',
  'user.password_changed': 'Password changed',
  'user.removed': 'User removed',
  'user.role_changed': 'Role changed',
  'user.second_factor_on': 'Second factor turned on',
  'user.second_factor_off': 'Second factor turned off',
  'user.recovery_codes': 'New recovery codes',
  'invitation.made': 'Invitation made',
  'invitation.withdrawn': 'Invitation withdrawn',
  'invitation.accepted': 'Invitation accepted',
  'team.second_factor': 'Second factor of the team',
  'tracker.created': 'Website added',
  'tracker.updated': 'Website changed',
  'tracker.disabled': 'Website disabled',
  'tracker.enabled': 'Website enabled',
  'tracker.deleted': 'Website deleted',
  'domain.added': 'Custom domain added',
  'domain.activated': 'Custom domain became active',
  'domain.failed': 'Custom domain failed',
  'domain.removed': 'Custom domain removed',
  'webhook.created': 'Endpoint created',
  'webhook.updated': 'Endpoint changed',
  'webhook.secret_rotated': 'Signing secret rotated',
  'webhook.recovered': 'Deliveries retried',
  'webhook.deleted': 'Endpoint deleted',
  'reveal.completed': 'Session revealed',
  'ledger.audited': 'Ledger audited',
};

/** The filter of the URL, as it was given too. `filter` null: a part of it is not understood. */
function filterIn({ query, scope: { period } }: PageContext) {
  const texts = {
    actor: (query.get('actor') ?? '').slice(0, 200),
    subject: (query.get('subject') ?? '').slice(0, 200),
  };
  const actor = actorIn(texts.actor);
  const isWrong =
    (texts.actor !== '' && actor === null) ||
    (texts.subject !== '' && !Object.hasOwn(SUBJECTS, texts.subject));
  const filter: ActivityFilter = {
    actor,
    subjectKind: texts.subject || null,
    since: Date.parse(period.from),
    until: Date.parse(period.to),
  };
  return { texts, filter: isWrong ? null : filter };
}

const ACTOR =
  /^(?:(key):([\w-]{1,100})|(user):([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})|(operator|service):)$/;

function actorIn(text: string): Actor | null {
  const [, key, keyId, user, userId, other] = ACTOR.exec(text) ?? [];
  const kind = key ?? user ?? other;
  return kind === undefined ? null : { kind, id: keyId ?? userId ?? '' };
}

const actorText = ({ kind, id }: Actor): string => `${kind}:${id}`;

const CURSOR = /^([\d-]{10}T[\d:.]{8,16}Z)_(\d{1,19})$/;

/** PostgreSQL's bigint. */
const LARGEST = 2n ** 63n - 1n;

/** Where the page begins: after the last row of the page before. */
function cursorIn(query: URLSearchParams): Cursor {
  const [, at, position] = CURSOR.exec(query.get('before') ?? '') ?? [];
  if (at === undefined || position === undefined || instantOf(at) === null) return null;
  return BigInt(position) > LARGEST ? null : { at, position };
}

async function list(page: PageContext): Promise<Reply> {
  const { reads, user, request } = page;
  const { texts, filter } = filterIn(page);
  const [found, actors] = await Promise.all([
    read(page, filter, cursorIn(page.query), PAGE + 1),
    listActors(reads.db, user.partner_id, isoTime(request.receivedAt)),
  ]);
  const rows = found.slice(0, PAGE);
  const last = found.length > PAGE ? rows.at(-1) : undefined;
  const query = { ...page.scope.query, ...texts };
  return show(page, {
    title: 'Activity',
    section: 'Settings',
    tab: PATH,
    ...(rows.length > 0
      ? { actions: html`<a class="button quiet" href="${linkTo(`${PATH}.csv`, query)}">Download as CSV</a>` }
      : {}),
    ...pickersOf(page, texts, actors),
    content: html`<p class="soft">Who changed what, by the dashboard, the API or the command line, for 400 days. Lookups, visits and
      reveals with a key are under <a href="${linkTo('/dashboard/usage', page.scope.query)}">Usage</a>.</p>
    ${
      rows.length === 0
        ? nothingYet(
            'No changes match',
            html`Choose a longer period, or see <a href="${PATH}">all changes of the last 7 days</a>.`,
          )
        : html`${table(
            'Changes, the latest first',
            ['Change', 'Of', 'By', 'Details', 'When'],
            rows.map((row) => [
              ACTIONS[row.action] ?? row.action,
              subjectOf(row),
              html`<a href="${linkTo(PATH, { ...query, actor: actorText(actorOf(row)) })}">${nameOf(row)}</a>`,
              row.summary === '' ? '–' : row.summary,
              page.time(row.at),
            ]),
            { minor: [3] },
          )}${pager(
            `${counted(rows.length, 'change')}${last === undefined ? '' : ', and there are older ones'}.`,
            last === undefined
              ? null
              : {
                  path: PATH,
                  query: { ...query, before: `${last.at}_${last.position}` },
                  text: 'Older changes',
                },
          )}`
    }`,
  });
}

function pickersOf(
  page: PageContext,
  { actor, subject }: ReturnType<typeof filterIn>['texts'],
  actors: Awaited<ReturnType<typeof listActors>>,
): Pick<Page, 'pickers'> {
  const known = [
    ...actors.map((one) => [actorText(one), `${one.name} (${one.kind})`] as const),
    ['operator:', OPERATOR] as const,
    ['service:', SERVICE] as const,
  ];
  // Somebody who is gone has made changes too.
  const gone = known.some(([value]) => value === actor) ? null : actorIn(actor);
  const everyone = [
    ['', 'Everyone'],
    ...known,
    ...(gone === null ? [] : [[actor, gone.id] as const]),
  ] as const;
  return {
    pickers: html`${picker(page, 'By', 'actor', everyone, actor)}
      ${picker(page, 'What', 'subject', [['', 'Everything'], ...Object.entries(SUBJECTS)], subject)}
      ${periodPicker(page)}`,
  };
}

const OPERATOR = 'The operator of the service';
const SERVICE = 'The service itself';

const actorOf = ({ actor_kind, actor_id }: ActivityRow): Actor => ({ kind: actor_kind, id: actor_id });

function nameOf({ actor_kind, actor_id, actor_name }: ActivityRow): string {
  switch (actor_kind) {
    case 'operator':
      return OPERATOR;
    case 'service':
      return SERVICE;
    case 'key':
    case 'user':
      return `${actor_name ?? actor_id} (${actor_kind})`;
    default: {
      const never: never = actor_kind;
      return never;
    }
  }
}

const PAGES: Readonly<Record<string, string>> = {
  key: '/dashboard/keys',
  tracker: '/dashboard/trackers',
  webhook: '/dashboard/webhooks',
  reveal: '/dashboard/reveals',
};

function subjectOf({ subject_kind, subject_id, subject_name }: ActivityRow): Content {
  // The details name a domain, and the account is the reader's own.
  if (subject_kind === 'partner' || subject_kind === 'domain') return '–';
  const name = subject_name ?? subject_id.slice(0, 8);
  const page = PAGES[subject_kind];
  return page === undefined ? name : html`<a href="${page}/${subject_id}">${name}</a>`;
}

async function csv(page: PageContext): Promise<Reply> {
  const rows = await read(page, filterIn(page).filter, null, MAX_CSV + 1);
  const heads = [
    'at',
    'action',
    'subject_kind',
    'subject_id',
    'subject',
    'actor_kind',
    'actor_id',
    'actor',
    'details',
  ];
  const lines = rows
    .slice(0, MAX_CSV)
    .map((row) => [
      row.at,
      row.action,
      row.subject_kind,
      row.subject_id,
      row.subject_name,
      row.actor_kind,
      row.actor_id,
      row.actor_name,
      row.summary,
    ]);
  const notice = `Older changes are left out: at most ${count(MAX_CSV)} a file.`;
  const more = rows.length > MAX_CSV ? [heads.map((head) => (head === 'details' ? notice : null))] : [];
  return csvAnswer(`doorplate-activity-${fileScope(page.scope)}.csv`, heads, [...lines, ...more]);
}
