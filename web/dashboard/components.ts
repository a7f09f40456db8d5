import { html as tag } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';

import type { Visit } from './api.ts';

/** A piece of a page that is markup already. */
export type Html = HtmlEscapedString;

export type Content = Html | string | number | false | null | undefined | readonly Content[];

/** Builds markup from a template. Values are escaped unless they are markup; null and false give nothing. */
export const html = (strings: TemplateStringsArray, ...values: readonly Content[]): Html =>
  // The library's own type allows promises, which `Content` leaves out.
  tag(strings, ...values) as Html;

/** The reason of a refusal, announced at once by screen readers. */
export const alert = ({ message, code }: { readonly message: string; readonly code: string }): Html =>
  html`<p class="alert" role="alert">${message} <small>(${code})</small></p>`;

/** A form that changes something. */
export const form = (visit: Pick<Visit, 'csrf'>, action: string, content: Content, className = ''): Html =>
  html`<form method="post" action="${action}" class="${className}">
    <input type="hidden" name="csrf" value="${visit.csrf}">${content}</form>`;

interface FieldOptions {
  readonly type?: 'text' | 'url' | 'number' | 'password' | 'date' | 'datetime-local';
  readonly value?: string;
  readonly hint?: Content;
  readonly required?: boolean;
  readonly autocomplete?: string;
  readonly min?: number;
  readonly maxlength?: number;
}

/** A labelled input with its hint. */
export function field(label: string, name: string, options: FieldOptions = {}): Html {
  const { type = 'text', value = '', hint, required = false, autocomplete = 'off', min, maxlength } = options;
  return html`<div class="field"><label for="${name}">${label}</label>
    <input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"
      ${required && html`required`} ${min !== undefined && html`min="${min}"`}
      ${maxlength !== undefined && html`maxlength="${maxlength}"`}
      ${hint !== undefined && html`aria-describedby="${name}-hint"`}>
    ${hint !== undefined && html`<small id="${name}-hint">${hint}</small>`}</div>`;
}

export const checkbox = (label: string, name: string, value: string, checked: boolean): Html =>
  html`<label class="check"><input type="checkbox" name="${name}" value="${value}" ${checked && html`checked`}>
    ${label}</label>`;

/** A select with one choice; `''` stands for all. */
export const select = (
  label: string,
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
): Html => html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">
  ${options.map(([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`)}
  </select></div>`;

/** A table with its own scroll bar on a narrow screen, which the keyboard can focus then. */
export const table = (
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Content[])[],
): Html => html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
  <caption>${caption}</caption>
  <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
  <tbody>${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`;

/** A table, or what is shown in place of one without rows. */
export const tableOr = (empty: Html, ...[caption, heads, rows]: Parameters<typeof table>): Html =>
  rows.length === 0 ? empty : table(caption, heads, rows);

/** Names and values of one object. */
export const facts = (pairs: readonly (readonly [name: string, value: Content])[]): Html =>
  html`<dl class="facts">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** The text of an empty list, with the next step. */
export const nothingYet = (title: string, next: Content): Html =>
  html`<section class="empty"><h2>${title}</h2><p>${next}</p></section>`;

/** An instant in UTC; the script adds the reader's local time. null: never. */
export const time = (iso: string | null, never = 'never'): Content =>
  iso === null ? never : html`<time datetime="${new Date(iso).toISOString()}">${utcText(iso)}</time>`;

const utcText = (iso: string): string => `${new Date(iso).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** A number with separators. */
export const count = (value: number): string => value.toLocaleString('en');

/** `1 unit`, `2 units`. */
export const counted = (value: number, one: string, more = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : more}`;

/** A state in one word, shown by more than its colour. */
export const badge = (state: string, tone: 'good' | 'bad' | 'wait' | 'off'): Html =>
  html`<span class="badge ${tone}">${state}</span>`;

/** Text with a copy button where scripts run. */
export const copyable = (label: string, text: string): Html =>
  html`<div class="copy"><pre tabindex="0" aria-label="${label}"><code>${text}</code></pre></div>`;

export const secretOnce = (label: string, secret: string): Html =>
  html`<section class="secret"><h2>${label}</h2>
    <p><strong>This is shown once.</strong> Keep it where your secrets are; nobody can show it again.</p>
    ${copyable(label, secret)}</section>`;

export interface Question {
  /** The action and its consequence. */
  readonly text: Content;
  readonly action: string;
  readonly button: string;
  readonly back: string;
  readonly fields?: Readonly<Record<string, string>>;
}

export const confirmation = (visit: Visit, { text, action, button, back, fields = {} }: Question): Html =>
  html`<section class="confirm"><div>${text}</div>${form(
    visit,
    action,
    html`${Object.entries(fields).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
    )}<button class="danger">${button}</button> <a class="button quiet" href="${back}">Cancel</a>`,
  )}</section>`;

type Trackers = readonly { readonly id: string; readonly name: string }[];

/** A select of one tracker, where `''` stands for all if `all` says how that is called. */
export function trackerSelect(trackers: Trackers, chosen: string, all?: string): Html {
  const options = trackers.map(({ id, name }) => [id, name] as const);
  return select('Tracker', 'tracker_id', all === undefined ? options : [['', all], ...options], chosen);
}

/** Returns what names a tracker, by its id. By a map, because a list may have a row for each of thousands. */
export function namesOfTrackers(trackers: Trackers): (id: string) => string {
  const names = new Map(trackers.map(({ id, name }) => [id, name]));
  return (id) => names.get(id) ?? 'deleted tracker';
}
