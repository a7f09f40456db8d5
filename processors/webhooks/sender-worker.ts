/** The thread of `sender-thread.ts`. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../platform/clock.ts';
import { createResolvers } from '../../platform/resolver.ts';
import { createSender } from './sender.ts';
import type { FromSender, SenderThreadSettings, ToSend } from './sender-thread.ts';

const DNS = { timeout: 1_000, tries: 3 } as const;

const post = (message: FromSender): void => parentPort?.postMessage(message);

const sender = createSender({
  ...(workerData as SenderThreadSettings),
  clock: systemClock,
  resolver: await createResolvers(DNS)(),
  onCost: (...cost) => post({ cost }),
});

parentPort?.on('message', async (message: ToSend | 'close') => {
  if (message === 'close') {
    await sender.close();
    parentPort?.close();
    return;
  }
  const { id, request } = message;
  const body = Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength);
  post({ id, result: await sender.send({ ...request, body }) });
});

post('ready');
