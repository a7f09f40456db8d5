import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type DestinationPolicy, parseDestination } from '../../domain/webhooks/destination.ts';
import { endsWithin } from '../../platform/pause.ts';
import type { ReceiverCost } from './receiver-debts.ts';
import type { Sender, SendRequest, SendResult } from './sender.ts';

/** What the thread is started with. */
export interface SenderThreadSettings {
  readonly policy: DestinationPolicy;
  /** PEM of certificate authorities to trust besides the default ones, for tests. */
  readonly extraCa: string | null;
}

/** To the thread. */
export interface ToSend {
  readonly id: number;
  readonly request: Omit<SendRequest, 'body'> & { readonly body: Uint8Array };
}

/** From the thread; `ready` once, when it can send. */
export type FromSender =
  | 'ready'
  | { readonly id: number; readonly result: SendResult }
  | { readonly cost: readonly [partnerId: string, ms: number, kind: ReceiverCost] };

/** Time limit for closing connections; attempts that still run are cut off. */
const CLOSE_MS = 500;

/**
 * Starts a sender on a thread of its own, because receivers choose what TLS, HTTP and DNS cost and when: on the main thread
 * all calls would wait for it (docs/adr, "Webhooks leave on a thread of their own"). A thread that fails is started again, because a
 * receiver may have made it fail; then `send` throws, and whether those requests were received is unknown. An error before the
 * first thread is ready is one of its settings or of the program, is thrown here and ends the process.
 */
export const startSenderThread = ({
  isOwnDomain,
  onCost,
  onFailure,
  ...settings
}: SenderThreadSettings & {
  /** Returns whether a host name is an active custom domain of the partner, which would loop back to this service. */
  readonly isOwnDomain: (hostname: string, partnerId: string) => Promise<boolean>;
  /** Called with the time of TLS handshakes and of decrypting long responses, milliseconds. */
  readonly onCost: (partnerId: string, ms: number, kind: ReceiverCost) => void;
  /** Called when the thread has failed and is started again. */
  readonly onFailure: (error: Error) => void;
}): Sender => {
  const waiting = new Map<number, PromiseWithResolvers<SendResult>>();
  let sent = 0;
  let closing = false;
  let hasBeenReady = false;

  const onMessage = (message: Exclude<FromSender, 'ready'>): void => {
    if ('cost' in message) onCost(...message.cost);
    else {
      waiting.get(message.id)?.resolve(message.result);
      waiting.delete(message.id);
    }
  };
  const onEnd = (error: Error, wasReady: boolean): void => {
    if (closing) return;
    hasBeenReady ||= wasReady;
    if (!hasBeenReady) throw error;
    const interrupted = [...waiting.values()];
    waiting.clear();
    thread = startThread(settings, onMessage, onEnd);
    onFailure(error);
    for (const { reject } of interrupted) reject(error);
  };
  let thread = startThread(settings, onMessage, onEnd);

  return {
    send: async (request) => {
      const url = parseDestination(request.url, settings.policy);
      if (url.ok && (await isOwnDomain(url.value.hostname, request.partner_id))) return OWN_ORIGIN;
      sent += 1;
      const id = sent;
      // A copy, because the body is part of a larger buffer, all of which would be sent.
      const body = new Uint8Array(request.body);
      const result = Promise.withResolvers<SendResult>();
      waiting.set(id, result);
      thread.postMessage({ id, request: { ...request, body } } satisfies ToSend, [body.buffer]);
      return result.promise;
    },
    close: async () => {
      closing = true;
      const ended = once(thread, 'exit');
      thread.postMessage('close');
      await endsWithin(ended, CLOSE_MS);
      await thread.terminate();
    },
  };
};

const startThread = (
  settings: SenderThreadSettings,
  onMessage: (message: Exclude<FromSender, 'ready'>) => void,
  onEnd: (error: Error, wasReady: boolean) => void,
): Worker => {
  const thread = new Worker(new URL('./sender-worker.ts', import.meta.url), {
    name: 'webhooks',
    workerData: settings,
  });
  let isReady = false;
  let failure = new Error('the thread that sends webhooks has ended');
  thread.on('message', (message: FromSender) => {
    if (message === 'ready') isReady = true;
    else onMessage(message);
  });
  thread.on('error', (error: Error) => {
    failure = error;
  });
  thread.on('exit', () => onEnd(failure, isReady));
  return thread;
};

const OWN_ORIGIN: SendResult = { http_status: null, error: 'own_origin', retry_after_ms: null };
