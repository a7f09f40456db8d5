import { readFileSync } from 'node:fs';
import { asUuid } from '../../http/contract/parameters.ts';
import type { ApiRequest, PublicRoute, Reply } from '../../http/contract/route.ts';
import { staticAnswers } from '../../http/contract/static-route.ts';
import { type ErrorCode, refusal } from '../../http/errors/error-catalog.ts';
import type { ServedHosts } from '../../http/server/own-host.ts';
import type { ListedTracker, TrackerDirectory } from '../../queries/trackers/directory.ts';
import { namedParameters } from '../query.ts';
import { pixelOperation } from './schemas.ts';

/** Built from `web/pixel/*.ts` and committed. */
const SCRIPT = new URL('../../web/pixel/dist/a.js', import.meta.url);
/** Short: what is mended in the script is on every page soon after. */
const FRESH_SECONDS = 300;

/** Notes what is fetched, for the install check of the tracker. */
interface PixelEvidence {
  script(trackerId: string): void;
  refused(trackerId: string, reason: 'untrusted_host', host: string): void;
}

/**
 * GET /tracking/a.js: the pixel, the same for every tracker that there is, disabled ones included: collecting is what a
 * disabled one does not do, and its page's cache should not be what finds out.
 */
export function pixelRoute(
  trackers: Pick<TrackerDirectory, 'find' | 'allows'>,
  collectsOn: ServedHosts['collectsOn'],
  evidence: PixelEvidence,
): PublicRoute {
  const script = staticAnswers(
    {
      body: readFileSync(SCRIPT),
      headers: {
        'content-type': 'text/javascript; charset=utf-8',
        'cross-origin-resource-policy': 'cross-origin',
        'x-content-type-options': 'nosniff',
      },
    },
    FRESH_SECONDS,
  );
  return {
    method: 'GET',
    path: '/tracking/a.js',
    access: 'public',
    body: 'none',
    bodyLimit: 0,
    operation: pixelOperation,
    handle: async (request) => {
      const given = namedParameters(request.query, ['tracker_id']);
      if (given?.tracker_id === undefined) return refused(request, 'invalid_query');
      const id = asUuid(given.tracker_id);
      if (id === null) return refused(request, 'invalid_tracker');
      const tracker = await trackers.find(id);
      if (tracker === null) return refused(request, 'tracker_not_found');
      if (tracker.deleted) return refused(request, 'tracker_deleted');
      // A host that refuses captures does not serve the pixel either.
      const host = request.header('host') ?? '';
      if (!(await collectsOn(host, id))) {
        evidence.refused(id, 'untrusted_host', host);
        return refused(request, 'untrusted_collector');
      }
      evidence.script(id);
      return sharedWith(request, tracker, trackers, script(request));
    },
  };
}

/** Without this, caches may keep a 404 or 410 for any time (RFC 9111 section 4.2.2). */
const refused = (request: ApiRequest, code: ErrorCode): Reply =>
  refusal(request, code, { headers: { 'cache-control': 'no-store' } });

/** A page that pins the script to a digest has to be let read it: the tracker's own pages may. */
function sharedWith(
  request: ApiRequest,
  tracker: ListedTracker,
  { allows }: Pick<TrackerDirectory, 'allows'>,
  answer: Reply,
): Reply {
  const origin = request.header('origin');
  const named = origin !== undefined && allows(tracker, origin);
  return {
    ...answer,
    headers: {
      ...answer.headers,
      vary: 'accept-encoding, origin',
      ...(named ? { 'access-control-allow-origin': origin } : {}),
    },
  };
}
