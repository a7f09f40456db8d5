import { utcDay } from '../../domain/kernel/time.ts';
import type { CustomParameters, SessionSecrets } from '../../domain/sessions/events.ts';
import type { Tab, Visit } from '../../domain/sessions/tab.ts';
import { newId } from '../new-id.ts';

/** Daily keys that seal personal data of sessions. */
export interface VisitorKeys {
  of(day: string): Promise<VisitorKey | null>;
}

interface VisitorKey {
  digest(text: string): string;
  seal(plain: Buffer, about: string): Buffer;
}

export interface CapturedVisit {
  readonly tracker_id: string;
  readonly partner_id: string;
  /** Token of the browser tab, lower case. */
  readonly token: string;
  readonly visit_id: string;
  /** Canonical address, public or not. */
  readonly ip: string;
  readonly visitor_country: string | null;
  readonly custom: CustomParameters;
}

/** Makes the command for a state of the tab. */
export type VisitCommand = Awaited<ReturnType<typeof commandOf>>;

/** Makes the command for each state that is tried; the id and seal of a new session are made only once. */
export const commandOf = async (keys: VisitorKeys, visit: CapturedVisit, at: number) => {
  const { ip, custom, token: _, ...rest } = visit;
  const today = utcDay(at);
  const key = await keys.of(today);
  if (key === null) throw new TypeError(`the key of ${today} has been destroyed`);
  const found = new Map([[today, key.digest(ip)]]);
  let begun: ReturnType<Visit['begin']> | null = null;
  const begin = () => {
    const session_id = newId();
    const secrets: SessionSecrets = { ip, custom: { ...custom } };
    const sealed = key.seal(Buffer.from(JSON.stringify(secrets)), session_id).toString('base64');
    return { session_id, sealed };
  };
  return async ({ sessions }: Tab): Promise<Visit> => {
    for (const { first_seen_at } of sessions) {
      const day = first_seen_at.slice(0, 10);
      if (found.has(day)) continue;
      const earlier = await keys.of(day);
      if (earlier !== null) found.set(day, earlier.digest(ip));
    }
    return {
      ...rest,
      type: 'Visit',
      at,
      visitorOn: (day) => found.get(day) ?? null,
      begin: () => {
        begun ??= begin();
        return begun;
      },
    };
  };
};
