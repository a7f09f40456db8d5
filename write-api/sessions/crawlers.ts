/** Requests that no visitor stands behind (contract, Pixel 4): prefetches, and crawlers that say who they are. */
import type { ApiRequest } from '../../http/contract/route.ts';

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
export const withoutVisitor = (request: Pick<ApiRequest, 'header'>): 'prefetch' | 'crawler' | null => {
  const purpose = request.header('sec-purpose') ?? request.header('purpose');
  if (purpose !== undefined && PREFETCH.test(purpose.slice(0, MAX_CHARACTERS))) return 'prefetch';
  const userAgent = (request.header('user-agent') ?? '').slice(0, MAX_CHARACTERS);
  return CRAWLERS.some((names) => names.test(userAgent)) ? 'crawler' : null;
};
