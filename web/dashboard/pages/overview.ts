import type { Reply } from '../../../http/contract/route.ts';
import type { Visit } from '../api.ts';
import { barChart, daysBack } from '../charts.ts';
import { count, facts, html, nothingYet, table } from '../components.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

type Requests = readonly {
  readonly day: string;
  readonly outcome: string;
  readonly requests: number;
  readonly cache_hits: number;
}[];
type Reveals = readonly { readonly day: string; readonly completed: number; readonly units: number }[];

export interface OverviewDeps {
  /** Of all keys, since a UTC day (`YYYY-MM-DD`), with every day included. */
  readonly requests: (partnerId: string, since: string) => Promise<Requests>;
  readonly reveals: (partnerId: string, since: string) => Promise<Reveals>;
}

const DAYS = 30;

/** The nine outcomes of a lookup (contract, Usage 2), in a person's words. */
const GROUPS: readonly (readonly [name: string, outcomes: readonly string[]])[] = [
  ['Answered', ['company', 'isp', 'unclassified']],
  ['Under way', ['enqueued', 'pending', 'retrying']],
  ['Refused or failed', ['invalid_request', 'rate_limited', 'error']],
];

/** The recent activity of the partner's keys, trackers and users. */
export const overviewPage = (deps: OverviewDeps): PageRoute => ({
  method: 'GET',
  path: '/dashboard',
  handle: (visit) => overview(deps, visit),
});

async function overview(deps: OverviewDeps, visit: Visit): Promise<Reply> {
  const { partner_id } = visit.user;
  const days = daysBack(visit.request.receivedAt, DAYS);
  const since = days[0] ?? '';
  const [requests, reveals] = await Promise.all([
    deps.requests(partner_id, since),
    deps.reveals(partner_id, since),
  ]);
  const isUnused = sum(requests, (row) => row.requests) === 0 && reveals.length === 0;
  return show(visit, {
    title: 'Overview',
    section: 'Overview',
    content: html`<p>The last ${DAYS} days, all keys together.</p>
    ${totals(requests, reveals)}
    ${isUnused && firstSteps}
    ${requestsByDay(days, requests)}
    ${outcomesByDay(days, requests)}
    ${revealsByDay(days, reveals)}
    ${outcomes(requests)}`,
  });
}

function totals(requests: Requests, reveals: Reveals) {
  const all = sum(requests, ({ requests }) => requests);
  const hits = sum(requests, ({ cache_hits }) => cache_hits);
  return facts([
    ['Lookup requests', count(all)],
    ['Answered from saved results', all === 0 ? '–' : `${count(hits)} (${Math.round((hits / all) * 100)} %)`],
    ['Reveals completed', count(sum(reveals, ({ completed }) => completed))],
    ['Units', count(sum(reveals, ({ units }) => units))],
  ]);
}

const requestsByDay = (days: readonly string[], requests: Requests) =>
  barChart({
    title: 'Lookup requests and cache hits a day',
    series: ['Requests', 'Cache hits'],
    days: days.map((day) => {
      const of = requests.filter((row) => row.day === day);
      return {
        day,
        values: [sum(of, ({ requests }) => requests), sum(of, ({ cache_hits }) => cache_hits)],
      };
    }),
  });

const outcomesByDay = (days: readonly string[], requests: Requests) =>
  barChart({
    title: 'Outcomes a day',
    series: GROUPS.map(([name]) => name),
    days: days.map((day) => ({
      day,
      values: GROUPS.map(([, of]) =>
        sum(
          requests.filter((row) => row.day === day && of.includes(row.outcome)),
          ({ requests }) => requests,
        ),
      ),
    })),
  });

const revealsByDay = (days: readonly string[], reveals: Reveals) =>
  barChart({
    title: 'Reveals and units a day',
    series: ['Reveals', 'Units'],
    days: days.map((day) => {
      const of = reveals.find((row) => row.day === day);
      return { day, values: [of?.completed ?? 0, of?.units ?? 0] };
    }),
  });

function outcomes(requests: Requests) {
  const all = sum(requests, ({ requests }) => requests);
  const rows = [...Map.groupBy(requests, ({ outcome }) => outcome)]
    .map(([outcome, rows]) => [outcome, sum(rows, ({ requests }) => requests)] as const)
    .sort(([, a], [, b]) => b - a)
    .map(([outcome, n]) => [outcome.replaceAll('_', ' '), count(n), `${((n / all) * 100).toFixed(1)} %`]);
  if (rows.length === 0) return null;
  return html`<section><h2>Outcomes</h2>${table(
    'Lookup requests by outcome',
    ['Outcome', 'Requests', 'Share'],
    rows,
  )}</section>`;
}

const sum = <T>(rows: readonly T[], of: (row: T) => number): number =>
  rows.reduce((total, row) => total + of(row), 0);

const firstSteps = nothingYet(
  'Nothing has happened yet',
  html`<a href="/dashboard/keys">Create a key</a> and ask for an address as the
    <a href="/docs">documentation</a> shows, or <a href="/dashboard/trackers">create a tracker</a> to see who visits
    a website.`,
);
