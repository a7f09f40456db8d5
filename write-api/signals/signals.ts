import type { IncomingMessage, ServerResponse } from 'node:http';
import { v7 as uuid } from 'uuid';
import type { CommandContext } from '../../commands/handle.ts';
import type { Observed } from '../../commands/signals/observe-signals.ts';
import { type Observation, readSignals } from '../../domain/signals/observation.ts';
import type { Position } from '../../event-store/port.ts';
import { failureCode } from '../../http/errors/failures.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type OpsHandler, sendJson } from '../../platform/telemetry/ops-server.ts';

export interface SignalsDeps {
  readonly clock: Clock;
  readonly observe: (observations: readonly Observation[], context: CommandContext) => Promise<Observed>;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Counts the names that an earlier batch already contained. */
  readonly countRepeated: (eventIds: readonly string[], batch: string) => Promise<number>;
  readonly onSignals: (counts: Taken) => void;
}

/** Counts of a batch's new and repeated clues (contract, Company signals 1). */
interface Taken {
  readonly accepted: number;
  readonly duplicates: number;
}

/** Room for a thousand of the longest. */
const BODY_LIMIT = 2 * 1_024 * 1_024;
const RETRY_SECONDS = 5;

/**
 * `POST /signals` on the operations listener: a batch of clues, all of it or nothing. 202 once it is durable. It may be
 * sent again whatever the answer was, or if there was none.
 */
export const signalsHandler =
  (deps: SignalsDeps): OpsHandler =>
  async (request, response) => {
    const refused = refuseByHeaders(request);
    if (refused !== null) return sendJson(response, 415, { error: refused });
    const text = await readText(request);
    if (text === null) {
      response.setHeader('connection', 'close');
      return sendJson(response, 413, { error: 'body_too_large' });
    }
    const sent = parse(text);
    if (sent === undefined) return sendJson(response, 400, { error: 'invalid_json' });
    const read = readSignals(sent);
    if (!read.ok) return sendJson(response, 400, wrong(read.index, read.field));
    await take(deps, read.value, response);
  };

async function take(
  deps: SignalsDeps,
  observations: readonly Observation[],
  response: ServerResponse,
): Promise<void> {
  try {
    const taken = await observe(deps, observations);
    deps.onSignals(taken);
    sendJson(response, 202, taken);
  } catch (error) {
    const code = failureCode(error);
    if (code === 'service_unavailable') throw error;
    response.setHeader('retry-after', RETRY_SECONDS);
    sendJson(response, 503, { error: code });
  }
}

/** Counts the new clues by the read model, where the first of each name counts. */
async function observe(
  { clock, observe: write, projected, countRepeated }: SignalsDeps,
  observations: readonly Observation[],
): Promise<Taken> {
  const id = uuid();
  const { batch, eventIds, position } = await write(observations, {
    correlationId: id,
    causationId: id,
    at: clock.now(),
  });
  if (batch === null) return { accepted: 0, duplicates: 0 };
  await projected(position);
  const accepted = eventIds.length - (await countRepeated(eventIds, batch));
  return { accepted, duplicates: observations.length - accepted };
}

const wrong = (index: number | null, field: string | null): object =>
  index === null
    ? { error: 'invalid_body' }
    : { error: 'invalid_signal', index, ...(field === null ? {} : { field }) };

/** A browser sends this type to another origin only after a preflight, which this listener refuses. */
function refuseByHeaders({ headers }: IncomingMessage): string | null {
  if (headers['content-encoding'] !== undefined) return 'unsupported_encoding';
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  return type === 'application/json' ? null : 'unsupported_media_type';
}

/** null: too long. */
async function readText(request: IncomingMessage): Promise<string | null> {
  if (Number(request.headers['content-length'] ?? 0) > BODY_LIMIT) return null;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_LIMIT) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** undefined: no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
