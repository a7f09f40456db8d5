/** What a pixel sends (contract, Pixel 1), and from where it may. */
import { parseCustom } from '../../domain/sessions/custom.ts';
import type { CustomParameters } from '../../domain/sessions/events.ts';
import { asUuid } from '../../http/contract/parameters.ts';

export interface Capture {
  readonly tracker_id: string;
  readonly token: string;
  readonly visit_id: string;
  readonly custom: CustomParameters;
}

const NAMES: ReadonlySet<string> = new Set(['tracker_id', 'token', 'visit_id', 'custom']);

/** By hand and not by schema: it runs for every page view of every customer's site. */
export const parseCapture = (body: unknown): Capture | 'invalid_capture' | 'invalid_custom_parameters' => {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'invalid_capture';
  if (!Object.keys(body).every((name) => NAMES.has(name))) return 'invalid_capture';
  const sent = body as Readonly<Record<string, unknown>>;
  const tracker_id = asUuid(sent.tracker_id);
  const token = asUuid(sent.token);
  const visit_id = asUuid(sent.visit_id);
  if (tracker_id === null || token === null || visit_id === null) return 'invalid_capture';
  const custom = sent.custom === undefined ? {} : parseCustom(sent.custom);
  return custom === null ? 'invalid_custom_parameters' : { tracker_id, token, visit_id, custom };
};

/** The tracker that a body names, whatever else is wrong with it. */
export const trackerNamedBy = (body: unknown): string | null =>
  typeof body === 'object' && body !== null && 'tracker_id' in body ? asUuid(body.tracker_id) : null;

/** Lets pages of this origin read the answer (fetch standard, CORS); never of any origin. */
export const corsHeaders = (origin: string): Readonly<Record<string, string>> => ({
  'access-control-allow-origin': origin,
  vary: 'origin',
});
