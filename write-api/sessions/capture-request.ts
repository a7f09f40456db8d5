/** What a pixel sends (contract, Pixel 1), and which requests come from prefetchers and crawlers (contract, Pixel 4). */
import type { CustomParameters } from '../../domain/sessions/events.ts';
import { asUuid } from '../../http/contract/parameters.ts';
import type { ApiRequest } from '../../http/contract/route.ts';

const MAX_LABELS = 32;
const MAX_BYTES = 2_048;
const MAX_VALUE_LENGTH = 512;
/** A letter, then letters, digits, `_`, `.`, `-`; ASCII only (contract, Pixel 2). It excludes `__proto__`. */
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const RESERVED: readonly string[] = ['constructor', 'prototype'];

/** Validates the labels of a snippet (contract, Pixel 2); null if they break a rule. */
export function parseCustom(value: unknown): CustomParameters | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const labels = Object.entries(value);
  if (labels.length > MAX_LABELS || !labels.every(isLabel)) return null;
  return Buffer.byteLength(JSON.stringify(value)) <= MAX_BYTES ? (value as CustomParameters) : null;
}

const isLabel = ([name, value]: [string, unknown]): boolean =>
  NAME.test(name) && !RESERVED.includes(name) && isValue(value);

function isValue(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return !isTooLong(value) && !value.includes('\u0000') && value.isWellFormed();
    case 'number':
      // JSON's 1e999 is parsed as Infinity, which JSON cannot represent.
      return Number.isFinite(value);
    case 'boolean':
      return true;
    default:
      return value === null;
  }
}

/** Counts code points, only if `length`, which counts UTF-16 units, is over the limit. */
const isTooLong = (text: string): boolean =>
  text.length > MAX_VALUE_LENGTH && [...text].length > MAX_VALUE_LENGTH;

export interface CaptureBody {
  readonly tracker_id: string;
  readonly token: string;
  readonly visit_id: string;
  readonly custom: CustomParameters;
}

/**
 * Names that a body may have; any other is refused. During a rolling upgrade a newer script reaches older processes: the pixel sends a
 * name that is added here in the release after this one at the earliest (docs/pixel.md).
 */
const NAMES: ReadonlySet<string> = new Set(['tracker_id', 'token', 'visit_id', 'custom']);

/** By hand and not by schema: it runs for every page view of every customer's site. */
export function parseCapture(body: unknown): CaptureBody | 'invalid_capture' | 'invalid_custom_parameters' {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'invalid_capture';
  if (!Object.keys(body).every((name) => NAMES.has(name))) return 'invalid_capture';
  const sent = body as Readonly<Record<string, unknown>>;
  const tracker_id = asUuid(sent.tracker_id);
  const token = asUuid(sent.token);
  const visit_id = asUuid(sent.visit_id);
  if (tracker_id === null || token === null || visit_id === null) return 'invalid_capture';
  const custom = sent.custom === undefined ? {} : parseCustom(sent.custom);
  return custom === null ? 'invalid_custom_parameters' : { tracker_id, token, visit_id, custom };
}

/** The tracker that a body names, whatever else is wrong with it. */
export const trackerNamedBy = (body: unknown): string | null =>
  typeof body === 'object' && body !== null && 'tracker_id' in body ? asUuid(body.tracker_id) : null;

/** Lets pages of this origin read the answer (fetch standard, CORS); never of any origin. */
export const corsHeaders = (origin: string): Readonly<Record<string, string>> => ({
  'access-control-allow-origin': origin,
  vary: 'origin',
});

/**
 * How crawlers of search engines and of social networks name themselves. A list of our own: the kept-up ones also know
 * HTTP tools and headless browsers, which are visitors, and take the browsers inside social apps for their crawlers.
 * Each expression takes a time proportional to the text (`npm run check:expressions`).
 */
const CRAWLERS = [
  // Search: Google, Microsoft, Yahoo, DuckDuckGo, Baidu, Yandex, Apple …
  /Googlebot|Google-InspectionTool|GoogleOther|Storebot-Google|AdsBot-Google|Mediapartners-Google|APIs-Google/i,
  /bingbot|adidxbot|msnbot|BingPreview|MicrosoftPreview|Yahoo! Slurp|DuckDuckBot|DuckAssistBot|Baiduspider/i,
  /Yandex[a-z]{0,20}Bot|yandex\.com\/bots|Applebot|PetalBot|AspiegelBot|SeznamBot/i,
  /Sogou[a-z ]{0,20} spider|360Spider/i,
  /YisouSpider|ToutiaoSpider|Yeti\/|Daum\/|coccocbot|Qwantbot|Qwantify|MojeekBot|Seekport|Mail\.RU_Bot|Amazonbot/i,
  /OAI-SearchBot|PerplexityBot|Claude-SearchBot|YouBot/i,
  // Social: link previews of networks and messengers.
  /facebookexternalhit|facebookcatalog|Facebot|meta-externalagent|meta-externalfetcher|Twitterbot|LinkedInBot/i,
  /Pinterestbot|pinterest\.com\/bot|Slackbot|Slack-ImgProxy|Discordbot|TelegramBot|redditbot|SkypeUriPreview/i,
  /vkShare|OdklBot|Snap URL Preview|TikTokSpider|Bytespider|Bluesky Cardyb|Mastodon\/|^WhatsApp\/|Embedly|Iframely/i,
];
/** A crawler's name stands within these characters; the rest of a header of 16 KB is not looked at. */
const MAX_CHARACTERS = 512;
const PREFETCH = /\bprefetch\b/i;

/** Why a capture makes no session; null: a visitor's. A prerendered page is a prefetch too until it is shown. */
export function nonVisitorReason(request: Pick<ApiRequest, 'header'>): 'prefetch' | 'crawler' | null {
  const purpose = request.header('sec-purpose') ?? request.header('purpose');
  if (purpose !== undefined && PREFETCH.test(purpose.slice(0, MAX_CHARACTERS))) return 'prefetch';
  const userAgent = (request.header('user-agent') ?? '').slice(0, MAX_CHARACTERS);
  return CRAWLERS.some((names) => names.test(userAgent)) ? 'crawler' : null;
}
