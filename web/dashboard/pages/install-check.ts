import type { CaptureRefusal } from '../../../domain/sessions/install-evidence.ts';
import type { Reply } from '../../../http/contract/route.ts';
import {
  readInstallEvidence,
  readInstallEvidenceOf,
  readLastVisitHour,
} from '../../../queries/trackers/install-evidence.ts';
import type { TrackerBody } from '../../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { listTrackers, mayChange, type PageContext, type PageReads } from '../api.ts';
import { barChart } from '../charts.ts';
import * as ui from '../components.ts';
import { type Content, type Html, html } from '../components.ts';
import { type Finding, type InstallEvidence, judgeInstallation } from '../install-findings.ts';
import { ask } from '../layout.ts';
import { originsMeant } from '../origins.ts';
import { get, type PageRoute } from '../routes.ts';
import { linkTo } from '../scope.ts';

const PATH = '/dashboard/trackers';

/** Reads what came of a tracker's pixel. */
export async function readEvidence({ pool, clock }: PageReads, trackerId: string): Promise<InstallEvidence> {
  const [seen, lastVisitHour] = await Promise.all([
    readInstallEvidence(pool, trackerId, clock.now()),
    readLastVisitHour(pool, trackerId),
  ]);
  return { ...seen, lastVisitHour };
}

const judged = (page: PageContext, { disabled_at, origins }: TrackerBody, evidence: InstallEvidence) =>
  judgeInstallation(
    { disabled: disabled_at !== null, origins },
    new URL(page.publicUrl).origin,
    evidence,
    page.request.receivedAt,
  );

/** Findings that need no change of a website that is not visited, or that its owner has made so. */
const NO_FAULT: readonly Finding['name'][] = ['disabled', 'no_script', 'quiet', 'only_crawlers'];
/** Findings that spoil visits which are taken. */
const SPOILS: readonly Finding['name'][] = ['private_address', 'one_address'];

/** What a list says of a website's pixel. */
export interface Pixel {
  readonly tracker: TrackerBody;
  /** ISO 8601; to the hour where it is older than a day. */
  readonly lastVisit: string | null;
  readonly state: Html;
  /** Why it sends nothing, or visits that nothing can be made of, as its page says; null: nothing that somebody has to change. */
  readonly fault: string | null;
}

/** Reads what lists say of the pixels of websites. */
export async function readPixels(
  page: PageContext,
  trackers: readonly TrackerBody[],
): Promise<readonly Pixel[]> {
  if (trackers.length === 0) return [];
  const ids = trackers.map(({ id }) => id);
  const evidence = await readInstallEvidenceOf(page.reads.pool, ids, page.request.receivedAt);
  return trackers.flatMap((tracker) => {
    const its = evidence.get(tracker.id);
    if (its === undefined) return [];
    const { state, findings } = judged(page, tracker, its);
    const fault = findings.find(({ name }) =>
      state === 'trouble' ? !NO_FAULT.includes(name) : state === 'receiving' && SPOILS.includes(name),
    );
    const lastVisit = its.visits?.last_at ?? its.lastVisitHour;
    const seen = tracker.disabled_at === null ? (fault?.seen ?? null) : null;
    return [{ tracker, lastVisit, state: stateBadge(tracker, { state, findings }), fault: seen }];
  });
}

/** The state of a website's installation in a word. */
export const installState = (page: PageContext, tracker: TrackerBody, evidence: InstallEvidence): Html =>
  stateBadge(tracker, judged(page, tracker, evidence));

function stateBadge({ disabled_at }: TrackerBody, { state, findings }: ReturnType<typeof judged>): Html {
  if (disabled_at !== null) return ui.badge('Disabled', 'off');
  if (state === 'waiting') return ui.badge('Waiting for visits', 'wait');
  if (state === 'receiving')
    return findings.length > 0
      ? ui.badge('Receiving, with a problem', 'wait')
      : ui.badge('Receiving', 'good');
  return findings.every(({ name }) => NO_FAULT.includes(name))
    ? ui.badge('No visits', 'wait')
    : ui.badge('Not working', 'bad');
}

/** What is wrong with a website's installation, and what to change. */
export function findingsOf(page: PageContext, tracker: TrackerBody, evidence: InstallEvidence): Content {
  const { state, findings } = judged(page, tracker, evidence);
  return html`${findings.map((finding, nth) =>
    ui.notice(remedy(finding), state === 'trouble' && nth === 0 ? 'bad' : 'wait'),
  )}${evidence.origins.length > 0 && origins(page, tracker, evidence)}`;
}

/** The section of a website's page that says whether visits come, and what to change if not. */
export function installCheck(page: PageContext, tracker: TrackerBody, evidence: InstallEvidence): Html {
  const { state } = judged(page, tracker, evidence);
  // A page that waits looks again by itself.
  return html`<section class="panel" id="install-check"${state === 'waiting' && html` data-live`}><h2>Install check</h2>
    ${stateOf(page, state, evidence)}
    ${findingsOf(page, tracker, evidence)}
    ${evidence.visits !== null && chart(evidence)}
    ${evidence.refusals.length > 0 && refusals(page, evidence)}
    ${evidence.hosts.length > 0 && hosts(page, evidence)}
    <p class="soft">This is what the service saw of the pixel up to 10 seconds ago. It is kept for 7 days. <a href="">Look again</a></p></section>`;
}

function stateOf(
  page: PageContext,
  state: ReturnType<typeof judgeInstallation>['state'],
  { visits, lastVisitHour }: InstallEvidence,
): Content {
  if (state === 'receiving') {
    const told =
      visits === null
        ? html`the last in the hour of ${page.time(lastVisitHour)}`
        : html`${ui.count(visits.count)} in the last 24 hours, the last ${page.ago(visits.last_at)}`;
    return ui.notice(html`<p><strong>Receiving visits:</strong> ${told}.</p>`, 'good');
  }
  if (state === 'waiting') {
    return lastVisitHour === null
      ? html`<p role="status"><strong>Waiting for the first visit …</strong> It shows here within seconds.</p>`
      : html`<p role="status"><strong>A page of the website has just been seen …</strong> What came of it shows here within ten seconds.</p>`;
  }
  if (lastVisitHour === null) return html`<p>No visit yet.</p>`;
  return html`<p>${visits === null ? 'No visit in the last 7 days.' : html`The last visit came ${page.ago(visits.last_at)}.`}</p>`;
}

const remedy = ({ seen, change, where, copy }: Finding): Content =>
  html`<p><strong>${seen}</strong></p><p>${change}</p><p class="soft">Where to change it: ${where}</p>
    ${copy !== undefined && ui.copyable('Content security policy', copy)}`;

const chart = ({ hours }: InstallEvidence): Html =>
  barChart({
    title: 'Visits an hour, last 24 hours',
    axis: 'Hour (UTC)',
    series: [{ name: 'Visits' }],
    points: hours.map(({ hour, visits }) => ({ label: hour.slice(11, 16), values: [visits] })),
  });

const REASONS: Readonly<Record<CaptureRefusal, string>> = {
  wrong_origin: 'The origin is not one of the website’s',
  untrusted_host: 'The host name does not belong to the website',
  invalid_labels: 'The labels break a rule',
  invalid_body: 'Not as the pixel sends it',
  rate: 'Too many within a second',
  disabled: 'The website was disabled',
  deleted: 'The website was deleted',
  unavailable: 'The service could not store it',
};

const refusals = (page: PageContext, { refusals }: InstallEvidence): Html =>
  ui.table(
    'Refused requests by reason',
    ['Reason', 'Last 24 hours', 'Last seen'],
    refusals.map(({ reason, count: seen, last_at }) => [REASONS[reason], ui.count(seen), page.ago(last_at)]),
    { numeric: [1] },
  );

const origins = (page: PageContext, tracker: TrackerBody, { origins }: InstallEvidence): Html =>
  ui.table(
    `${ui.counted(origins.length, 'origin')} that ${origins.length === 1 ? 'was' : 'were'} refused, the latest first`,
    ['Origin', 'Last seen', 'Change'],
    origins.map(({ name, last_at }) => [
      html`<code>${name}</code>`,
      page.ago(last_at),
      changeFor(page, tracker, name),
    ]),
  );

/** What takes visits of a refused origin: the origin, or the same website over https, where the form of the API has no other. */
function changeFor(page: PageContext, tracker: TrackerBody, name: string): Content {
  const secure = name.replace(/^http:/, 'https:');
  const wanted = [name, secure].find((origin) => addition(tracker, origin) !== null);
  const reason =
    wanted === name
      ? ''
      : secure !== name
        ? `Pages over http are not measured, only those over https. Have the website lead there${tracker.origins.includes(secure) ? '' : ', and add that origin'}. `
        : tracker.origins.includes(name)
          ? 'Added meanwhile.'
          : 'This is no website’s origin: a file, a sandboxed frame or a program sent it.';
  return html`${reason}${
    wanted !== undefined &&
    mayChange(page) &&
    html`<a class="button quiet" href="${linkTo(`${PATH}/${tracker.id}/origin`, { origin: wanted })}">Add ${wanted === name ? 'to the website' : wanted}…</a>`
  }`;
}

const hosts = (page: PageContext, { hosts }: InstallEvidence): Html =>
  ui.table(
    `${ui.counted(hosts.length, 'host name')} that ${hosts.length === 1 ? 'was' : 'were'} refused, the latest first`,
    ['Host', 'Last seen'],
    hosts.map(({ name, last_at }) => [html`<code>${name}</code>`, page.ago(last_at)]),
  );

/** The websites with an origin that may be added; null: it may not, or is there. */
function addition({ origins }: TrackerBody, origin: string): readonly string[] | null {
  // A page has one host.
  const isOrigin = originsMeant(origin).join() === origin && !origin.includes('*');
  return isOrigin && !origins.includes(origin) ? [...origins, origin] : null;
}

/** The question before an origin is added. Its answer is the tracker's own change. */
export const addOriginPage: PageRoute = get(`${PATH}/:tracker_id/origin`, askToAdd, { needs: 'member' });

async function askToAdd(page: PageContext): Promise<Reply> {
  const { tracker_id } = page.request.params;
  const { trackers } = await listTrackers(page);
  const tracker = trackers.find(({ id }) => id === tracker_id);
  const origin = page.query.get('origin') ?? '';
  const wanted = tracker === undefined ? null : addition(tracker, origin);
  if (tracker === undefined || wanted === null) {
    return redirectAfterPost(tracker === undefined ? PATH : `${PATH}/${tracker.id}`);
  }
  return ask(page, {
    title: `Add ${origin} to “${tracker.name}”?`,
    section: 'Websites',
    text: html`<p>Visits from pages of <code>${origin}</code> are then taken, within a second. Add it if the pages are yours: anyone can
      put your snippet on a page of theirs.</p>`,
    action: `${PATH}/${tracker.id}/change`,
    button: 'Add the origin',
    back: `${PATH}/${tracker.id}`,
    isFinal: false,
    fields: {
      name: tracker.name,
      origins: wanted.join(' '),
      customer_reference: tracker.customer_reference ?? '',
    },
  });
}
