/** Verification of webhooks: Standard Webhooks, as docs/webhooks.md describes it. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookEvent } from './generated.ts';

const SKEW_SECONDS = 300;
/** 24 bytes at least: a shorter one was cut off or is no secret. */
const SECRET = /^whsec_([A-Za-z0-9+/]{32,}={0,2})$/;
const ID = /^evt_[\w-]{1,100}$/;
const TIMESTAMP = /^\d{10,11}$/;
const SIGNATURES = /^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$/;

const RAW =
  "pass the request's raw bytes, before any parser: in Express app.post(path, express.raw({ type: '*/*' }), …) and request.body, elsewhere await request.text()";

/** The reason why a request is invalid. */
export type WebhookFault = 'headers' | 'timestamp' | 'signature' | 'event';

/** The request does not come from the service, or is too old or too new: answer it with a 400. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly fault: WebhookFault;

  constructor(fault: WebhookFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Headers of Node's servers, a plain object with names in any case, or the `Headers` of fetch. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WebhookRequest {
  /** The endpoint's `signing_secret`; several during the overlap of a rotation. */
  readonly secret: string | readonly string[];
  readonly headers: WebhookHeaders;
  /** The exact bytes, before any parser. */
  readonly body: string | Uint8Array;
  /** For tests: milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/**
 * Returns the event in a request after verifying that the service has sent it. Store it unless you have one with its
 * `id`, answer with a 2xx, and process it then.
 * @throws WebhookVerificationError when the request is invalid
 * @throws TypeError when `secret` is no signing secret, or `body` a parsed object
 */
export const verifyWebhook = ({ secret, headers, body, now = Date.now }: WebhookRequest): WebhookEvent => {
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new TypeError(`body is ${typeof body === 'object' ? 'a parsed object' : typeof body}: ${RAW}`);
  const id = header(headers, 'webhook-id', ID);
  const timestamp = header(headers, 'webhook-timestamp', TIMESTAMP);
  const signatures = header(headers, 'webhook-signature', SIGNATURES).split(' ').map(bytesOf);

  const keys = [secret].flat().map(keyOf);
  if (keys.length === 0) throw new TypeError('secret must be a signing secret (whsec_…)');
  const expected = keys.map((key) =>
    bytesOf(`v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`),
  );
  const genuine = expected.some((one) => signatures.some((given) => timingSafeEqual(given, one)));
  if (!genuine)
    throw new WebhookVerificationError(
      'signature',
      `no signature fits a secret; if the body was parsed and serialised again, ${RAW}`,
    );

  if (Math.abs(now() / 1_000 - Number(timestamp)) > SKEW_SECONDS) {
    throw new WebhookVerificationError('timestamp', 'the timestamp is too old or too new');
  }
  const event = eventIn(body);
  if (event?.id !== id)
    throw new WebhookVerificationError('event', 'the event has another id than its header');
  return event;
};

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const keyOf = (secret: string): Uint8Array => {
  const key = SECRET.exec(secret)?.[1];
  if (key === undefined) throw new TypeError('secret must be a signing secret (whsec_…)');
  return Buffer.from(key, 'base64');
};

/** The one value of a header. */
const header = (headers: WebhookHeaders, name: string, form: RegExp): string => {
  const values = isFetchHeaders(headers)
    ? [headers.get(name)]
    : Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []));
  const [value] = values;
  // Two values joined with a comma do not have the form.
  if (values.length === 1 && typeof value === 'string' && form.test(value)) return value;
  throw new WebhookVerificationError('headers', `${name} is missing, malformed or there twice`);
};

const isFetchHeaders = (headers: WebhookHeaders): headers is { get(name: string): string | null } =>
  typeof headers.get === 'function';

const eventIn = (body: string | Uint8Array): WebhookEvent | null => {
  try {
    return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body));
  } catch {
    return null;
  }
};
