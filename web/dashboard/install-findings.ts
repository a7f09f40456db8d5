/** Why a tracker shows nothing, from what the service saw of its pixel (docs/pixel.md, "Why do I see nothing"). */
import { DAY, HOUR, SECOND } from '../../domain/kernel/time.ts';
import { type CaptureRefusal, EVIDENCE_LATE_MS } from '../../domain/sessions/install-evidence.ts';
import type { InstallEvidence as SeenEvidence } from '../../queries/trackers/install-evidence.ts';

/** What arrived, and when the last visit came, as far back as usage is kept: the hour (ISO 8601), of which usage tells at once. */
export interface InstallEvidence extends SeenEvidence {
  readonly lastVisitHour: string | null;
}

/** One cause, and its remedy. */
export interface Finding {
  readonly name:
    | CaptureRefusal
    | 'no_script'
    | 'no_visit'
    | 'quiet'
    | 'only_crawlers'
    | 'one_address'
    | 'private_address';
  /** What was seen, as a sentence. */
  readonly seen: string;
  /** What to change, as sentences. */
  readonly change: string;
  /** People who can change it, and where they do. */
  readonly where: string;
  /** Text to copy. */
  readonly copy?: string;
}

export interface Judgement {
  /** `waiting`: nothing has ever come, and nothing says why; or what has just come is not all there yet. */
  readonly state: 'receiving' | 'waiting' | 'trouble';
  /** In the order in which to look at them. */
  readonly findings: readonly Finding[];
}

/** Fewer visits from one address may be one visitor's. */
const ENOUGH_VISITS = 20;
const NAMES_SHOWN = 3;
/** A visit follows its page's load of the script within seconds, and either is told by its own process. */
const WHOLE_AFTER_MS = EVIDENCE_LATE_MS + 5 * SECOND;

/** The tracker as it is now. */
interface JudgedTracker {
  readonly disabled: boolean;
  readonly origins: readonly string[];
}

/**
 * Judges what was seen in the last 24 hours. What the tracker's owner has mended meanwhile is no finding, and nothing is called missing
 * that may be on its way: each process tells what it saw at most 10 s later, and usage tells of a visit before that.
 * @param service the origin that the tracker's tag loads the script from
 * @param now milliseconds
 */
export function judgeInstallation(
  tracker: JudgedTracker,
  service: string,
  evidence: InstallEvidence,
  now: number,
): Judgement {
  const { disabled } = tracker;
  const visits = countOf(evidence.visits);
  const origins = evidence.origins.filter(({ name }) => !isAllowed(tracker, name));
  const refusals = evidence.refusals.filter(
    ({ reason, count }) =>
      count > 0 &&
      reason !== 'disabled' &&
      (reason !== 'wrong_origin' || origins.length > 0 || evidence.origins.length === 0),
  );
  const standing = { ...evidence, origins, refusals };
  const { lastVisitHour, scripts, crawlers, prefetches } = evidence;
  const visitHour = Date.parse(lastVisitHour ?? '');
  // Usage has visits that evidence does not: those that a process of 0.2.0 took, and those before evidence was kept or lost by a crash.
  const isVisited = visits > 0 || visitHour > now - DAY;
  const isVisitUntold = visits === 0 && visitHour + HOUR + WHOLE_AFTER_MS > now;
  const isAnythingNew = [scripts, crawlers, prefetches].some(
    (seen) =>
      seen !== null && countOf(seen) < ENOUGH_VISITS && Date.parse(seen.last_at) > now - WHOLE_AFTER_MS,
  );
  const isWhole = !isVisitUntold && !isAnythingNew;
  const findings = [
    ...(disabled ? [DISABLED] : []),
    ...refusals.flatMap((refusal) => refusalFindings(refusal, standing)),
    ...(disabled
      ? []
      : visits > 0
        ? addresses(evidence, visits)
        : isWhole && !isVisited
          ? silence(evidence, service)
          : []),
  ];
  if (disabled) return { state: 'trouble', findings };
  if (isVisited && !isVisitUntold) return { state: 'receiving', findings };
  const isWaiting =
    isVisitUntold ||
    (findings.length === 0 && !isWhole) ||
    (lastVisitHour === null && findings.every(({ name }) => name === 'no_script'));
  return { state: isWaiting ? 'waiting' : 'trouble', findings };
}

const WILDCARD = 'https://*';

/** Judges the Origin of a visit as the service does. */
const isAllowed = ({ origins }: JudgedTracker, name: string): boolean =>
  origins.some(
    (origin) =>
      origin === name ||
      (origin.startsWith(WILDCARD) &&
        name.startsWith('https://') &&
        name.endsWith(origin.slice(WILDCARD.length))),
  );

const countOf = (seen: SeenEvidence['visits']): number => seen?.count ?? 0;

const DISABLED: Finding = {
  name: 'disabled',
  seen: 'The website is disabled, so it takes no visits.',
  change: 'Enable the website.',
  where: 'Under “Settings” of the website.',
};

function refusalFindings(
  { reason, count }: InstallEvidence['refusals'][number],
  { origins, hosts }: InstallEvidence,
): Finding[] {
  const times = timesOf(count);
  switch (reason) {
    case 'wrong_origin':
      return [
        {
          name: reason,
          seen: `Visits arrive from origins that are not allowed${namesOf(origins)}.`,
          change:
            'Add the origin to the website if the page is yours. Scheme, host and port have to be the same: https://example.com and https://www.example.com are two origins, and http:// is never taken.',
          where: 'Below, in the list of origins.',
        },
      ];
    case 'untrusted_host':
      return [
        {
          name: reason,
          seen: `The pixel is asked for under host names that do not belong to this website${namesOf(hosts)}.`,
          change:
            'Use the snippet as it stands on this page. A host name of your own works once it is an active custom domain of this website. A proxy in front of the service has to pass the Host header on.',
          where:
            'In the snippet on the website, or under “Custom domains”. The operator of the service configures the proxy (PUBLIC_URL, PUBLIC_HOSTS).',
        },
      ];
    case 'invalid_labels':
      return [
        {
          name: reason,
          seen: `Visits were refused ${times} because their labels break a rule.`,
          change:
            'Labels are a flat JSON object: at most 32 names and 2,048 bytes; names of letters, digits, “_”, “.” and “-” that begin with a letter; values of at most 512 characters.',
          where: 'In data-custom of the snippet on the website.',
        },
      ];
    case 'invalid_body':
      return [
        {
          name: reason,
          seen: `Requests were refused ${times} that are not as the pixel sends them.`,
          change:
            'Load the script from this service, with the snippet as it stands on this page, instead of a copy. A proxy must pass the body on unchanged.',
          where: 'In the snippet on the website, or in the proxy in front of the service.',
        },
      ];
    case 'rate':
      return [
        {
          name: reason,
          seen: `Visits were refused ${times} because too many came within a second.`,
          change:
            'Change nothing if it was a load test. Otherwise a proxy makes all visitors look like one, who may not send so many, or the limits are too low for this website.',
          where:
            'In the configuration of the service: its operator names the proxies in TRUSTED_PROXIES, and can raise CAPTURES_PER_SECOND_PER_VISITOR and CAPTURES_PER_SECOND_PER_TRACKER.',
        },
      ];
    case 'unavailable':
      return [
        {
          name: reason,
          seen: `Visits were refused ${times} because the service could not store them.`,
          change:
            'If a webhook endpoint has not answered for long, its deliveries fill the queue: fix, pause or delete the endpoint.',
          where: 'Under “Webhooks”; else ask the operator of the service.',
        },
      ];
    case 'disabled':
    case 'deleted':
      return [];
    default: {
      const never: never = reason;
      return never;
    }
  }
}

/** Why no visit was taken in a day, as far as no refusal says it. */
function silence(evidence: InstallEvidence, service: string): Finding[] {
  const { refusals, crawlers, prefetches, scripts, visits } = evidence;
  const refused = refusals.reduce((sum, { count }) => sum + count, 0);
  const loads = countOf(scripts);
  // Refusals explain as many loads.
  if (refused > 0 && loads <= refused) return [];
  const policy = `script-src ${service}; connect-src ${service}`;
  if (countOf(crawlers) + countOf(prefetches) > 0) {
    return [
      {
        name: 'only_crawlers',
        seen: 'Only crawlers and pages that browsers fetched ahead were seen, which are no visits.',
        change: 'Open a page of the website yourself: the pixel works.',
        where: 'On the website.',
      },
    ];
  }
  if (loads > 0) {
    return [
      {
        name: 'no_visit',
        seen: `The script was loaded ${timesOf(loads)}, but no visit arrived.`,
        change:
          'Allow connect-src for this service in the content security policy of the page. If the snippet waits for consent, or a blocker or Global Privacy Control is on, nothing is sent: try a browser without them. If the labels in data-custom break a rule, the browser’s console says so.',
        where: 'In the Content-Security-Policy header of the website; then in its consent tool.',
        copy: policy,
      },
    ];
  }
  if (visits !== null || evidence.lastVisitHour !== null) {
    return [
      {
        name: 'quiet',
        seen: 'The script was not loaded in the last 24 hours, though visits came before.',
        change: 'Look whether the snippet is still on the pages, and the website is still visited.',
        where: 'On the website.',
        copy: policy,
      },
    ];
  }
  return [
    {
      name: 'no_script',
      seen: `No page has loaded the script ${scripts === null ? 'yet' : 'in the last 24 hours'}.`,
      change:
        'Put the snippet into the pages, publish them, and open one. If the page has a content security policy, it has to allow script-src and connect-src for this service. If the snippet waits for consent, give it.',
      where: 'On the website, and in its Content-Security-Policy header.',
      copy: policy,
    },
  ];
}

/** Whether a proxy hides where visitors come from. */
function addresses(
  { hasEnoughTabs, hasManyAddresses, hasPublicAddress, refusals }: InstallEvidence,
  visits: number,
): Finding[] {
  const refused = refusals.find(({ reason }) => reason === 'rate')?.count ?? 0;
  const change =
    'Each proxy in front of the service has to send the visitor’s address in X-Forwarded-For, and the service has to know the addresses of its proxies.';
  const where =
    'In the proxy, and in the configuration of the service: its operator sets TRUSTED_PROXIES to the addresses of the proxies (CIDRs).';
  if (!hasPublicAddress) {
    return [
      {
        name: 'private_address',
        seen: 'All visits come from private addresses, which belong to no company: visitors in your own network, or a proxy that hides them.',
        change,
        where,
      },
    ];
  }
  if (hasManyAddresses || !hasEnoughTabs || visits + refused < ENOUGH_VISITS) return [];
  return [
    {
      name: 'one_address',
      seen: `All ${visits.toLocaleString('en-US')} visits come from one address: visitors of one office, or a proxy that hides them.`,
      change,
      where,
    },
  ];
}

const timesOf = (count: number): string => (count === 1 ? 'once' : `${count.toLocaleString('en-US')} times`);

function namesOf(seen: InstallEvidence['origins']): string {
  if (seen.length === 0) return '';
  const more = seen.length > NAMES_SHOWN ? ` and ${seen.length - NAMES_SHOWN} more` : '';
  return `: ${seen
    .slice(0, NAMES_SHOWN)
    .map(({ name }) => name)
    .join(', ')}${more}`;
}
