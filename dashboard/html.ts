import { html as tag } from 'hono/html';
import type { HtmlEscapedString } from 'hono/utils/html';

/** A piece of a page that is markup already. */
export type Html = HtmlEscapedString;

export type Content = Html | string | number | false | null | undefined | readonly Content[];

/** Builds markup from a template. Values are escaped unless they are markup; null and false give nothing. */
export const html = (strings: TemplateStringsArray, ...values: readonly Content[]): Html =>
  // The library's own type allows promises, which `Content` leaves out.
  tag(strings, ...values) as Html;
