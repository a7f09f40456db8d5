import type { Caller } from './call.ts';
import type {
  CustomDomain,
  CustomDomainCreate,
  CustomDomainDeleted,
  CustomDomainList,
  Tracker,
  TrackerCreate,
  TrackerDeleted,
  TrackerList,
  TrackerUpdate,
  TrackerUsage,
} from './generated.ts';
import type { CallOptions } from './options.ts';

/** UTC dates, `2026-03-14`; `to` is the day after the last one. Default: today. */
export interface DateRange {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Changes only the given fields. */
export const rangeOf = ({ from, to }: DateRange): { from?: string; to?: string } => ({
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
});

export interface Trackers {
  /** All but the deleted ones. */
  list(options?: CallOptions): Promise<TrackerList>;
  /** Not repeated after an unknown outcome: list the trackers first. */
  create(tracker: TrackerCreate, options?: CallOptions): Promise<Tracker>;
  /** Changes what is given; visits are judged by new origins within a second. */
  update(trackerId: string, changes: TrackerUpdate, options?: CallOptions): Promise<Tracker>;
  /** Stops new sessions and reveals. */
  disable(trackerId: string, options?: CallOptions): Promise<Tracker>;
  enable(trackerId: string, options?: CallOptions): Promise<Tracker>;
  /** Cannot be undone. */
  delete(trackerId: string, options?: CallOptions): Promise<TrackerDeleted>;
  usage(trackerId: string, range?: DateRange, options?: CallOptions): Promise<TrackerUsage>;
}

export const createTrackers = ({ body }: Caller): Trackers => {
  const of = (trackerId: string) => ({ path: { tracker_id: trackerId } });
  return {
    list: (options) => body('listTrackers', {}, options),
    create: (tracker, options) => body('createTracker', { body: tracker }, options),
    update: (trackerId, changes, options) =>
      body('updateTracker', { ...of(trackerId), body: changes }, options),
    disable: (trackerId, options) => body('disableTracker', of(trackerId), options),
    enable: (trackerId, options) => body('enableTracker', of(trackerId), options),
    delete: (trackerId, options) => body('deleteTracker', of(trackerId), options),
    usage: (trackerId, range = {}, options = {}) =>
      body('readTrackerUsage', { ...of(trackerId), query: rangeOf(range) }, options),
  };
};

/** A customer's own host names for the pixel of a tracker. */
export interface Domains {
  list(trackerId: string, options?: CallOptions): Promise<CustomDomainList>;
  /** Make the host name a CNAME of the response's `cname_target`; it becomes active automatically. */
  create(trackerId: string, domain: CustomDomainCreate, options?: CallOptions): Promise<CustomDomain>;
  get(trackerId: string, domainId: string, options?: CallOptions): Promise<CustomDomain>;
  delete(trackerId: string, domainId: string, options?: CallOptions): Promise<CustomDomainDeleted>;
}

export const createDomains = ({ body }: Caller): Domains => {
  const of = (trackerId: string) => ({ path: { tracker_id: trackerId } });
  const one = (trackerId: string, domainId: string) => ({
    path: { tracker_id: trackerId, domain_id: domainId },
  });
  return {
    list: (trackerId, options) => body('listDomains', of(trackerId), options),
    create: (trackerId, domain, options) => body('createDomain', { ...of(trackerId), body: domain }, options),
    get: (trackerId, domainId, options) => body('getDomain', one(trackerId, domainId), options),
    delete: (trackerId, domainId, options) => body('deleteDomain', one(trackerId, domainId), options),
  };
};
