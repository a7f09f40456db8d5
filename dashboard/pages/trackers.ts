import type { Reply } from '../../http/contract/route.ts';
import type { TrackerBody } from '../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { badge, field, form, nothingYet, table, time } from '../components.ts';
import { html } from '../html.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import { type Refused, textOf, type Visit } from '../visit.ts';

export const PATH = '/dashboard/trackers';

/** The partner's trackers, pixels on customers' websites: all of them, and a new one. */
export const trackerListPages: readonly PageRoute[] = [
  { method: 'GET', path: PATH, handle: (visit) => list(visit) },
  { method: 'POST', path: PATH, handle: (visit) => create(visit) },
];

export interface TrackerList {
  readonly trackers: readonly TrackerBody[];
}

export const list = async (visit: Visit, refused: Refused = null): Promise<Reply> => {
  const listed = await visit.api<TrackerList>('GET', '/v1/trackers');
  const trackers = listed.ok ? listed.body.trackers : [];
  return show(visit, {
    title: 'Trackers',
    section: 'Trackers',
    refused: refused ?? (listed.ok ? null : listed),
    content: html`${
      trackers.length === 0
        ? nothingYet(
            'No trackers yet',
            'A tracker is the pixel of one website. Create the first one below, then put its snippet on the pages.',
          )
        : table(
            'Trackers',
            ['Name', 'State', 'Websites', 'Your reference', 'Created'],
            trackers.map((tracker) => [
              html`<a href="${PATH}/${tracker.id}">${tracker.name}</a>`,
              stateOf(tracker),
              tracker.origins.join(', '),
              tracker.customer_reference,
              time(tracker.created_at),
            ]),
          )
    }
    <section><h2>Create a tracker</h2>${form(
      visit,
      PATH,
      html`${field('Name', 'name', { value: textOf(visit, 'name'), required: true, maxlength: 200 })}
      <div class="field"><label for="origins">Websites</label>
        <textarea id="origins" name="origins" rows="3" required aria-describedby="origins-hint">${textOf(visit, 'origins')}</textarea>
        <small id="origins-hint">One origin a line: <code>https://www.example.com</code>, or
        <code>https://*.example.com</code> for every subdomain.</small></div>
      ${field('Your reference', 'customer_reference', { value: textOf(visit, 'customer_reference'), maxlength: 200, hint: 'Optional: what you call this customer.' })}
      <button>Create the tracker</button>`,
    )}</section>`,
  });
};

export const stateOf = ({ disabled_at }: TrackerBody) =>
  disabled_at === null ? badge('enabled', 'good') : badge('disabled', 'off');

const create = async (visit: Visit): Promise<Reply> => {
  const reference = textOf(visit, 'customer_reference');
  const origins = textOf(visit, 'origins').split(/\s+/).filter(Boolean);
  const made = await visit.api<TrackerBody>('POST', '/v1/trackers', {
    body: { name: textOf(visit, 'name'), origins, customer_reference: reference === '' ? null : reference },
  });
  return made.ok ? redirectAfterPost(`${PATH}/${made.body.id}`, 'tracker-created') : list(visit, made);
};
