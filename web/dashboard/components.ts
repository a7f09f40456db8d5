import { html as tag } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';
import { searchKey } from '../../domain/kernel/text.ts';
import { NEAR } from '../../operations/thresholds.ts';
import type { PageContext } from './api.ts';
import { linkTo, UUID } from './scope.ts';

/** A piece of a page that is markup already. */
export type Html = HtmlEscapedString;

export type Content = Html | string | number | false | null | undefined | readonly Content[];

/** Builds markup from a template. Values are escaped unless they are markup; null and false give nothing. */
export const html = (strings: TemplateStringsArray, ...values: readonly Content[]): Html =>
  // The library's own type allows promises, which `Content` leaves out.
  tag(strings, ...values) as Html;

/** The reason of a refusal, announced at once by screen readers, with its code for who reports it. */
export const alert = ({ message, code }: { readonly message: string; readonly code: string }): Html =>
  html`<div class="alert" role="alert"><p>${message}</p>${details(code)}</div>`;

/** The code of a refusal, which a person needs only to report it or to look it up. */
export const details = (code: string): Html =>
  html`<details><summary>Details</summary>Code: <code>${code}</code></details>`;

/** A form that changes something. */
export const form = (
  page: Pick<PageContext, 'csrf'>,
  action: string,
  content: Content,
  className = '',
): Html =>
  html`<form method="post" action="${action}" class="${className}">
    <input type="hidden" name="csrf" value="${page.csrf}">${content}</form>`;

interface FieldOptions {
  /** Default: the name, which a page with two such fields cannot use twice. */
  readonly id?: string;
  readonly type?: 'text' | 'url' | 'number' | 'password' | 'date' | 'datetime-local';
  readonly value?: string;
  readonly hint?: Content;
  /** Why the value is not understood. */
  readonly error?: Content;
  readonly required?: boolean;
  readonly autocomplete?: string;
  readonly min?: number;
  readonly maxlength?: number;
  readonly placeholder?: string;
}

/** A labelled input with its hint. */
export function field(label: string, name: string, options: FieldOptions = {}): Html {
  const {
    id = name,
    type = 'text',
    value = '',
    hint,
    error,
    required = false,
    autocomplete = 'off',
    min,
    maxlength,
    placeholder,
  } = options;
  return html`<div class="field"><label for="${id}">${label}</label>
    <input id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"
      ${required && html`required`} ${min !== undefined && html`min="${min}"`}
      ${maxlength !== undefined && html`maxlength="${maxlength}"`}
      ${placeholder !== undefined && html`placeholder="${placeholder}"`}
      ${error !== undefined && html`aria-invalid="true"`}
      ${(hint ?? error) !== undefined && html`aria-describedby="${error === undefined ? '' : `${id}-error `}${hint === undefined ? '' : `${id}-hint`}"`}>
    ${error !== undefined && html`<small class="wrong" id="${id}-error">${error}</small>`}
    ${hint !== undefined && html`<small id="${id}-hint">${hint}</small>`}</div>`;
}

/** What the form of an action that `needsProof` asks for. `id`: differs where a page has several. */
export const proofField = (
  { user }: Pick<PageContext, 'user'>,
  id = 'proof',
  label = 'Your password',
): Html =>
  // Password managers look for the name.
  html`<input type="text" value="${user.name}" autocomplete="username" readonly hidden>
    ${field(label, 'proof', { id, type: 'password', required: true, autocomplete: 'current-password' })}`;

/** `required`: the form is not sent without it. */
export const checkbox = (
  label: string,
  name: string,
  value: string,
  checked: boolean,
  required = false,
): Html =>
  html`<label class="check"><input type="checkbox" name="${name}" value="${value}" ${checked && html`checked`} ${required && html`required`}>
    ${label}</label>`;

/** A select with one choice; `''` stands for all. A choice that is not among the options stays, and is marked. */
export function select(
  label: string,
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
): Html {
  const isKnown = chosen === '' || options.some(([value]) => value === chosen);
  const all = isKnown ? options : [...options, [chosen, `“${chosen}”`] as const];
  return html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}"${
    !isKnown && html` aria-invalid="true" aria-describedby="${name}-error"`
  }>
  ${all.map(([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`)}
  </select>${!isKnown && html`<small class="wrong" id="${name}-error">“${chosen}” is none of these, so nothing is found.</small>`}</div>`;
}

interface TableOptions {
  /** Columns of figures, from 0: they are set to the right. */
  readonly numeric?: readonly number[];
  /** Columns that a phone leaves out. */
  readonly minor?: readonly number[];
  /** Whether the first column has a check box, so that the second names the row. */
  readonly hasBoxes?: boolean;
  /** Whether the rows are all that there are, so that the reader may sort them. */
  readonly isWhole?: boolean;
}

/**
 * A table, whose rows a phone shows on two lines. The first column names the row and links to what the row stands for. A table that is
 * wider than its page all the same has its own scroll bar, which the keyboard can focus.
 */
export function table(
  caption: string,
  heads: readonly Content[],
  rows: readonly (readonly Content[])[],
  { numeric = [], minor = [], hasBoxes = false, isWhole = false }: TableOptions = {},
): Html {
  const classOf = (column: number): Content => {
    const names = [
      numeric.includes(column) && 'number',
      minor.includes(column) && 'minor',
      hasBoxes && column === 0 && 'tick',
    ].filter(Boolean);
    return names.length > 0 && html` class="${names.join(' ')}"`;
  };
  // On two lines a figure stands without its head.
  const labelOf = (column: number) => numeric.includes(column) && html` data-label="${heads[column]}"`;
  return html`<div class="list"><p class="caption" aria-hidden="true">${caption}</p>
  <div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table${isWhole && rows.length > 1 && html` data-sortable`}>
  <caption class="unseen">${caption}</caption>
  <thead><tr>${heads.map((head, column) => html`<th scope="col"${classOf(column)}>${head}</th>`)}</tr></thead>
  <tbody>${rows.map((cells) => html`<tr>${cells.map((cell, column) => html`<td${classOf(column)}${labelOf(column)}>${cell}</td>`)}</tr>`)}</tbody>
  </table></div></div>`;
}

/** A table, or what is shown in place of one without rows. */
export const tableOr = (empty: Html, ...[caption, heads, rows, options]: Parameters<typeof table>): Html =>
  rows.length === 0 ? empty : table(caption, heads, rows, options);

/** A search by name in a short list that is there as a whole. `q` in the address. */
export const searchForm = ({ query }: Pick<PageContext, 'query'>): Html =>
  html`<form class="search" method="get" role="search"><input type="search" name="q" value="${wantedName(query)}" maxlength="200" placeholder="Search" aria-label="Search" autocomplete="off">
    <button class="quiet apply">Search</button></form>`;

const wantedName = (query: URLSearchParams): string => (query.get('q') ?? '').trim();

/** The rows of a short list whose text has what is searched for. */
export function searched<Row>(
  { query }: Pick<PageContext, 'query'>,
  rows: readonly Row[],
  textOf: (row: Row) => string,
): readonly Row[] {
  const text = searchKey(wantedName(query));
  return text === '' ? rows : rows.filter((row) => searchKey(textOf(row)).includes(text));
}

/** What an empty list tells a user who may not add to it. */
export const OTHERS_ADD = 'An owner or a member of your team adds the first one.';

/** What a search that finds nothing shows. */
export const noMatch = (path: string): Html =>
  nothingYet('Nothing matches', html`<a href="${path}">Show all</a>`);

/** How many rows a list shows, and the link to those after them. `next`: the parameters of the next page; null: there is none. */
export function pager(
  shown: Content,
  next: {
    readonly path: string;
    readonly query: Readonly<Record<string, string | undefined>>;
    readonly text: string;
  } | null,
): Html {
  return html`<p class="pager"><span>${shown}</span>${
    next && html` <a class="button quiet" href="${linkTo(next.path, next.query)}">${next.text}</a>`
  }</p>`;
}

/** One figure with what it counts, and how it changed. */
export interface Tile {
  readonly name: string;
  readonly value: Content;
  readonly href?: string;
  /** The figure of the period before; null: it is not kept. */
  readonly before?: number | null;
  readonly now?: number;
}

/** The figures at the head of a page. `here`: the name of the one that the chart below shows. */
export const tiles = (all: readonly Tile[], here?: string): Html =>
  html`<dl class="tiles">${all.map(
    ({ name, value, href, before, now = 0 }) =>
      html`<div${name === here && html` class="here"`}><dt>${
        href === undefined
          ? name
          : html`<a href="${href}"${name === here && html` aria-current="true"`}>${name}</a>`
      }</dt><dd>${value}${typeof before === 'number' && changeOf(now, before)}</dd></div>`,
  )}</dl>`;

/** The change to the period before; nothing where there was nothing. */
function changeOf(now: number, before: number): Content {
  const change = before === 0 ? 0 : Math.round(((now - before) / before) * 100);
  if (change === 0) return null;
  const [sign, word, tone] = change > 0 ? ['▲', 'up', 'up'] : ['▼', 'down', 'down'];
  return html` <small class="${tone}" title="${count(before)} in the period before"><span aria-hidden="true">${sign}</span><span class="unseen">${word}</span> ${count(Math.abs(change))} %</small>`;
}

/** A share of a limit. `of` null: there is no limit. */
export function gauge(name: string, used: number, of: number | null): Html {
  if (of === null)
    return html`<div class="gauge"><span>${name}</span><span>${count(used)}, no limit</span></div>`;
  const share = of === 0 ? 1 : used / of;
  const tone = share >= 1 ? 'bad' : share >= NEAR ? 'wait' : 'good';
  return html`<div class="gauge"><span>${name}</span>${meter(share, tone)}
    <span>${count(used)} of ${count(of)}${share >= NEAR && html` ${badge(share >= 1 ? 'used up' : 'nearly used up', tone)}`}</span></div>`;
}

/** A bar that is filled to a share; the figures stand beside it. */
export const meter = (share: number, tone: 'good' | 'bad' | 'wait'): Html =>
  html`<svg class="meter ${tone}" height="8" aria-hidden="true"><rect width="100%" height="8" rx="4"/><rect width="${(Math.min(share, 1) * 100).toFixed(1)}%" height="8" rx="4"/></svg>`;

/** A panel with a heading. */
export const panel = (title: string, content: Content): Html =>
  html`<section class="panel"><h2>${title}</h2>${content}</section>`;

/** What the reader has to know or do; `tone` says how urgent it is. */
export const notice = (content: Content, tone: 'good' | 'bad' | 'wait' = 'wait'): Html =>
  html`<div class="notice ${tone}">${content}</div>`;

/** Names and values of one object. */
export const facts = (pairs: readonly (readonly [name: string, value: Content])[]): Html =>
  html`<dl class="facts">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** The text of an empty list, with the next step. `button`: where that is taken. */
export const nothingYet = (title: string, next: Content, button?: Content): Html =>
  html`<section class="empty"><h2>${title}</h2><p>${next}</p>${button && html`<p>${button}</p>`}</section>`;

/** A number with separators. */
export const count = (value: number): string => value.toLocaleString('en');

/** `1 unit`, `2 units`. */
export const counted = (value: number, one: string, more = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : more}`;

/** The first of a list's names, and how many there are beside them. */
export const fewOf = (names: readonly string[], shown: number): string =>
  `${names.slice(0, shown).join(', ')}${names.length > shown ? ` +${names.length - shown}` : ''}`;

/** A state in one word, shown by more than its colour. */
export const badge = (state: string, tone: 'good' | 'bad' | 'wait' | 'off'): Html =>
  html`<span class="badge ${tone}">${state}</span>`;

/** Text with a copy button where scripts run. */
export const copyable = (label: string, text: string): Html =>
  html`<div class="copy"><pre tabindex="0" aria-label="${label}"><code>${text}</code></pre></div>`;

export const secretOnce = (label: string, secret: string): Html =>
  html`<section class="secret"><h2>${label}</h2>
    <p><strong>This is shown once.</strong> Copy it now: nobody can show it again.</p>
    ${copyable(label, secret)}</section>`;

export interface Question {
  /** The action and its consequence. */
  readonly text: Content;
  readonly action: string;
  readonly button: string;
  readonly back: string;
  readonly fields?: Readonly<Record<string, string>>;
  /** Whether it cannot be undone: the button is red then. */
  readonly isFinal?: boolean;
  /** Whether the action `needsProof`. */
  readonly asksForProof?: boolean;
}

export const confirmation = (
  page: PageContext,
  { text, action, button, back, fields = {}, isFinal = true, asksForProof = false }: Question,
): Html =>
  html`<section class="confirm${isFinal && ' final'}"><div>${text}</div>${form(
    page,
    action,
    html`${Object.entries(fields).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
    )}${asksForProof && proofField(page)}<button class="${isFinal && 'danger'}">${button}</button> <a class="button quiet" href="${back}">Cancel</a>`,
  )}</section>`;

export type Trackers = readonly { readonly id: string; readonly name: string }[];

export const DELETED = 'Deleted website';

/** A select of one tracker, where `''` stands for all if `all` says how that is called. */
export function trackerSelect(trackers: Trackers, chosen: string, all?: string): Html {
  const listed = trackers.map(({ id, name }) => [id, name] as const);
  // One that is deleted still has sessions.
  const isUnlisted = UUID.test(chosen) && !trackers.some(({ id }) => id === chosen);
  const options = isUnlisted ? [...listed, [chosen, DELETED] as const] : listed;
  return select('Website', 'tracker_id', all === undefined ? options : [['', all], ...options], chosen);
}

/** Returns what names a tracker, by its id. By a map, because a list may have a row for each of thousands. */
export function namesOfTrackers(trackers: Trackers): (id: string) => string {
  const names = new Map(trackers.map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? DELETED;
}
