/**
 * Two made-up future releases, as changes to the files of this one. The first adds a projection and a column, and
 * reads a new version of an event; the second writes that version, which needs every process at the first
 * (CONTRIBUTING.md).
 */
export const READING = '9.1.0';
export const WRITING = '9.2.0';

export interface Change {
  readonly file: string;
  /** The text to replace; null: the file is new. */
  readonly from: string | null;
  readonly to: string;
}

const MIGRATION = `
alter table read.session add column visits integer not null default 1;
create table read.session_visit (session_id uuid primary key, visits integer not null);
`;

const INDEX = '-- No transaction\ncreate index concurrently session_by_visits on read.session (visits);\n';

/** Counts each event once, so a skipped or repeated event shows. */
const PROJECTION = `
export const sessionVisits = {
  name: 'session-visits',
  tables: ['session_visit'],
  types: ['sessions.SessionCreated.v1', 'sessions.SessionVisited.v1', 'sessions.SessionVisited.v2'],
  async apply(events, db) {
    for (const { data } of events) {
      await db.query(
        \`insert into session_visit as s (session_id, visits) values ($1, 1)
         on conflict (session_id) do update set visits = s.visits + 1\`,
        [data.session_id],
      );
    }
  },
};
`;

const version = (release: string): Change => ({
  file: 'package.json',
  from: '"name": "doorplate",\n  "version": ',
  to: `"name": "doorplate",\n  "version": "${release}", "before": `,
});

const EXPANDED: readonly Change[] = [
  { file: 'migrations/9001_visits.sql', from: null, to: MIGRATION },
  { file: 'migrations/9002_by-visits.sql', from: null, to: INDEX },
  { file: 'projections/sessions/session-visits.ts', from: null, to: PROJECTION },
  {
    file: 'projections/all.ts',
    from: "import { sessions } from './sessions/sessions.ts';",
    to: "import { sessions } from './sessions/sessions.ts';\nimport { sessionVisits } from './sessions/session-visits.ts';",
  },
  { file: 'projections/all.ts', from: 'trackers, sessions,', to: 'trackers, sessions, sessionVisits,' },
  {
    file: 'domain/sessions/events.ts',
    from: "  'sessions.SessionVisited.v1': z.object({ ...ofSession, seen_at: instant }),",
    to: `  'sessions.SessionVisited.v1': z.object({ ...ofSession, seen_at: instant }),
  'sessions.SessionVisited.v2': z.object({ ...ofSession, seen: z.object({ at: instant }) }),`,
  },
  {
    file: 'domain/sessions/tab.ts',
    from: "      case 'sessions.SessionVisited.v1':",
    to: `      case 'sessions.SessionVisited.v2':
        return afterVisit(state, event.data, event.data.seen.at);
      case 'sessions.SessionVisited.v1':`,
  },
  {
    file: 'projections/sessions/sessions.ts',
    from: `    case 'sessions.SessionVisited.v1': {
      const { session_id, seen_at } = event.data;`,
    to: `    case 'sessions.SessionVisited.v1':
    case 'sessions.SessionVisited.v2': {
      const { session_id } = event.data;
      const seen_at = 'seen' in event.data ? event.data.seen.at : event.data.seen_at;`,
  },
  {
    file: 'projections/sessions/sessions.ts',
    from: 'visited.set(session_id, {',
    to: 'visited.set(session_id, { visits: (visited.get(session_id)?.visits ?? 0) + 1,',
  },
  {
    file: 'projections/sessions/sessions.ts',
    from: '  set last_seen_at = greatest(s.last_seen_at, n.last_seen_at),',
    to: '  set visits = s.visits + n.visits, last_seen_at = greatest(s.last_seen_at, n.last_seen_at),',
  },
];

const WRITTEN: readonly Change[] = [
  { file: `migrations/9003_visits-seen_needs-${READING}.sql`, from: null, to: 'select 1;\n' },
  {
    file: 'domain/sessions/tab.ts',
    from: "        type: 'sessions.SessionVisited.v1',",
    to: "        type: 'sessions.SessionVisited.v2',",
  },
  {
    file: 'domain/sessions/tab.ts',
    from: 'visit_id, seen_at: isoTime(at) },',
    to: 'visit_id, seen: { at: isoTime(at) } },',
  },
];

export const CHANGES: Readonly<Record<typeof READING | typeof WRITING, readonly Change[]>> = {
  [READING]: [version(READING), ...EXPANDED],
  [WRITING]: [version(WRITING), ...EXPANDED, ...WRITTEN],
};
