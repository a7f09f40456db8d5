/** Requests that no visitor stands behind (decisions, Pixel): prefetches, and crawlers that say who they are. */
import type { ApiRequest } from './route.ts';

/**
 * How crawlers of search engines and of social networks name themselves. A list of our own: the kept-up ones also know
 * HTTP tools and headless browsers, which are visitors, and take the browsers inside social apps for their crawlers.
 */
const CRAWLERS = new RegExp(
  [
    // Search: Google, Microsoft, Yahoo, DuckDuckGo, Baidu, Yandex, Apple …
    'Googlebot|Google-InspectionTool|GoogleOther|Storebot-Google|AdsBot-Google|Mediapartners-Google|APIs-Google',
    'bingbot|adidxbot|msnbot|BingPreview|MicrosoftPreview|Yahoo! Slurp|DuckDuckBot|DuckAssistBot|Baiduspider',
    'Yandex[a-z]*Bot|yandex\\.com/bots|Applebot|PetalBot|AspiegelBot|SeznamBot|Sogou[a-z ]* spider|360Spider',
    'YisouSpider|ToutiaoSpider|Yeti/|Daum/|coccocbot|Qwantbot|Qwantify|MojeekBot|Seekport|Mail\\.RU_Bot|Amazonbot',
    'OAI-SearchBot|PerplexityBot|Claude-SearchBot|YouBot',
    // Social: link previews of networks and messengers.
    'facebookexternalhit|facebookcatalog|Facebot|meta-externalagent|meta-externalfetcher|Twitterbot|LinkedInBot',
    'Pinterestbot|pinterest\\.com/bot|Slackbot|Slack-ImgProxy|Discordbot|TelegramBot|redditbot|SkypeUriPreview',
    'vkShare|OdklBot|Snap URL Preview|TikTokSpider|Bytespider|Bluesky Cardyb|Mastodon/|^WhatsApp/|Embedly|Iframely',
  ].join('|'),
  'i',
);
const PREFETCH = /\bprefetch\b/i;

/** Why a capture makes no session; null: a visitor's. A prerendered page is a prefetch too until it is shown. */
export const withoutVisitor = (request: Pick<ApiRequest, 'header'>): 'prefetch' | 'crawler' | null => {
  const purpose = request.header('sec-purpose') ?? request.header('purpose');
  if (purpose !== undefined && PREFETCH.test(purpose)) return 'prefetch';
  return CRAWLERS.test(request.header('user-agent') ?? '') ? 'crawler' : null;
};
