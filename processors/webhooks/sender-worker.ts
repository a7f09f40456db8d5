/** The thread of `sender-thread.ts`. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../platform/clock.ts';
import { createSender } from './sender.ts';
import type { FromSender, SenderThreadSettings, ToSend } from './sender-thread.ts';

const post = (message: FromSender): void => parentPort?.postMessage(message);

const sender = createSender({
  ...(workerData as SenderThreadSettings),
  clock: systemClock,
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
