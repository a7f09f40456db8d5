import type { EventStore } from '../../event-store/port.ts';

/** Returns whether a stream was deleted for ever and its name is not forgotten. */
export const isExpired = async (
  { readStream }: Pick<EventStore, 'readStream'>,
  stream: string,
): Promise<boolean> => {
  let found = false;
  const onExpired = (): void => {
    found = true;
  };
  await Array.fromAsync(readStream(stream, { onExpired }));
  return found;
};
