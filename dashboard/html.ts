import { html as tag } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';

/** A piece of a page: text that is markup already. */
export type Html = HtmlEscapedString;

export type Content = Html | string | number | false | null | undefined | readonly Content[];

/** Markup of a template. What is put into it is escaped unless it is markup itself; null and false are nothing. */
export const html = (strings: TemplateStringsArray, ...values: readonly Content[]): Html =>
  // The library's own type foresees promises, which `Content` leaves out.
  tag(strings, ...values) as Html;
