/**
 * What a page shows is chosen with small pickers beside its title: menus of links, which act at once and need no script. What else a
 * list can be filtered by stands in one more menu, and what is active as chips below the title, each of which ends its filter.
 */
import type { PageContext } from './api.ts';
import { type Content, DELETED, field, type Html, html, type Trackers } from './components.ts';
import { LONGEST_DAYS, PERIODS, USUAL, UUID } from './scope.ts';

type Asked = Pick<PageContext, 'query' | 'scope'>;
type Change = Readonly<Record<string, string>>;

/** Parameters that end with any change of what is shown. */
const CURSORS = ['before', 'after', 'cursor', 'said', 'looked'];

function without(query: URLSearchParams, names: readonly string[]): URLSearchParams {
  const left = [...query].filter(([name, value]) => value !== '' && ![...CURSORS, ...names].includes(name));
  return new URLSearchParams(left);
}

/** The address of the same page with other parameters; '' ends one. */
export function changed({ query }: Pick<Asked, 'query'>, change: Change): string {
  const next = without(query, Object.keys(change));
  for (const [name, value] of Object.entries(change)) if (value !== '') next.set(name, value);
  return `?${next}`;
}

const hidden = (query: URLSearchParams): Content =>
  [...query].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);

const menu = (label: string, chosen: string, isActive: boolean, content: Content): Html =>
  html`<details class="picker${isActive && ' active'}" name="picker"><summary><span class="unseen">${label}: </span>${chosen}</summary><div class="menu">${content}</div></details>`;

type Choices = readonly (readonly [value: string, text: string])[];

interface PickerOptions {
  /** The choice that is no filter; default: ''. */
  readonly usual?: string;
  /** Other parameters that end with a choice. */
  readonly ends?: Change;
  /** What follows the choices in the menu. */
  readonly more?: Content;
}

/** A picker of one parameter of the address. A value that is not among the choices stays, and is marked. */
export function picker(
  page: Asked,
  label: string,
  name: string,
  choices: Choices,
  chosen: string,
  { usual = '', ends = {}, more }: PickerOptions = {},
): Html {
  const known = choices.find(([value]) => value === chosen);
  const links = choices.map(
    ([value, text]) =>
      html`<li><a href="${changed(page, { ...ends, [name]: value })}"${value === chosen && html` aria-current="true"`}>${text}</a></li>`,
  );
  return html`${menu(label, known?.[1] ?? `“${chosen}”`, chosen !== usual, html`<ul>${links}</ul>${more}`)}${
    known === undefined &&
    html`<small class="wrong">“${chosen}” is none of these, so nothing is found.</small>`
  }`;
}

/** `chosen`: an id of the page's own; default: the scope's. */
export function websitePicker(
  page: Asked,
  trackers: Trackers,
  chosen = page.scope.query.tracker_id ?? '',
): Html {
  const listed = trackers.map(({ id, name }) => [id, name] as const);
  // One that is deleted still has sessions.
  const isGone = UUID.test(chosen) && !trackers.some(({ id }) => id === chosen);
  const gone = isGone ? [[chosen, DELETED] as const] : [];
  return picker(page, 'Website', 'tracker_id', [['', 'All websites'], ...listed, ...gone], chosen);
}

/** A picker of the period; two dates are the last choice. */
export function periodPicker(page: Asked): Html {
  const { period, query, isRefused } = page.scope;
  const asked = query.period ?? period.name;
  const days = [query.from ?? period.days[0] ?? '', query.to ?? period.days.at(-1) ?? ''] as const;
  const dates = html`<form method="get">${hidden(without(page.query, ['period', 'from', 'to']))}<input type="hidden" name="period" value="custom">
    ${field('From', 'from', { type: 'date', value: days[0] })}
    ${field('To', 'to', { type: 'date', value: days[1] })}
    <button class="quiet">Show these days</button></form>`;
  const presets = PERIODS.filter(([value]) => value !== 'custom');
  const custom = asked === 'custom' ? [['custom', isRefused ? 'Custom' : period.text] as const] : [];
  const options = { usual: USUAL, ends: { from: '', to: '' }, more: dates };
  return html`${picker(page, 'Period', 'period', [...presets, ...custom], asked, options)}${
    isRefused &&
    html`<small class="wrong">“${days[0]}” to “${days[1]}” is no period of at most ${LONGEST_DAYS} days that begins in the past, so nothing is found.</small>`
  }`;
}

/** The pickers of most pages. */
export const scopePickers = (page: Asked, trackers: Trackers): Html =>
  html`${(trackers.length > 1 || page.query.has('tracker_id')) && websitePicker(page, trackers)}${periodPicker(page)}`;

/** A menu of filters that are typed. They act as soon as one is changed; without scripts there is a button. `names`: of its fields. */
export const filterMenu = (page: Asked, names: readonly string[], fields: Content): Html =>
  menu(
    'More',
    'Filter',
    false,
    html`<form class="filter" method="get">${hidden(without(page.query, names))}${fields}<button class="quiet apply">Apply</button></form>`,
  );

export interface Chip {
  readonly text: Content;
  /** The parameters that it stands for. */
  readonly names: readonly string[];
  /** Why it is not understood. */
  readonly error?: Content;
}

/** The active filters, each with a link that ends it. */
export function chips(page: Asked, active: readonly (Chip | false)[]): Content {
  const shown = active.filter((chip) => chip !== false);
  const end = (names: readonly string[]): string => `?${without(page.query, names)}`;
  if (shown.length === 0) return null;
  return html`<ul class="chips" aria-label="Active filters">${shown.map(
    ({ text, names, error }) =>
      html`<li><a class="chip" href="${end(names)}">${text}<span class="unseen">, remove this filter</span></a>${error && html` <small class="wrong">${error}</small>`}</li>`,
  )}${shown.length > 1 && html`<li><a href="${end(shown.flatMap(({ names }) => names))}">Clear all</a></li>`}</ul>`;
}
