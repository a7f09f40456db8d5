/** The product as its operator runs it: a separate process, reached only over HTTP and by the command. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRuntime } from '../../bin/runtime.ts';
import { postmasterOf, removeDataFolder } from '../../cli/installation/data-folder.ts';
import { type Key, makeKey } from '../../cli/installation/make-key.ts';
import { prepareServing } from '../../cli/installation/serving.ts';
import type { KeyLimits } from '../../domain/partners/events.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { type Called, type CallOptions, call } from './call.ts';
import { doorplateHere, type Ended, type Environment, MASTER_KEY } from './doorplate.ts';
import { reapProcess } from './reaped.ts';
import { makeTestFolder } from './temporary-folder.ts';

/** An environment in which the process reports on stderr what it loads of OpenTelemetry. */
export const NOTE_TELEMETRY: Environment = {
  NODE_OPTIONS: `--import=${import.meta.resolve('./note-telemetry.ts')}`,
};

export interface ServiceOptions {
  readonly role?: 'all' | 'api' | 'workers';
  /** Replaces the embedded PostgreSQL. */
  readonly databaseUrl?: string;
  readonly env?: Environment;
}

export interface Service {
  readonly url: string;
  readonly dataDir: string;
  /** Its configuration, which the command needs as well to work beside it. */
  readonly env: Environment;
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  call(method: string, path: string, options?: CallOptions): Promise<Called>;
  /** Runs a command beside it. */
  cli(...args: string[]): Promise<Ended>;
  demoKey(): string;
  /** Creates a key of a new partner, past the command. */
  newKey(limits?: Partial<KeyLimits>): Promise<Key>;
  ready(): Promise<void>;
  /** Sends SIGTERM. @returns the exit code */
  terminate(): Promise<number | null>;
  kill(): Promise<void>;
  killPostgres(): void;
  /** Starts it again with the same configuration. */
  restart(): Promise<void>;
  remove(): Promise<void>;
}

/** Starts `doorplate serve` on free ports and waits until it is ready. Call `remove` at the end. */
export const startService = async (options: ServiceOptions = {}): Promise<Service> => {
  const { role = 'all', databaseUrl, env: more = {} } = options;
  const dataDir = makeTestFolder();
  const database: Environment = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl, MASTER_KEY };
  const serving = await prepareServing({
    role,
    dataDir,
    env: { ...database, ...more },
    onStart: reapProcess,
  });
  const { url, env, stdout, stderr, start, stop, ready } = serving;
  const service: Service = {
    url,
    dataDir,
    env,
    get pid() {
      return serving.pid;
    },
    stdout,
    stderr,
    call: (method, path, call_ = {}) => call(url, method, path, call_),
    cli: (...args) => doorplateHere(args, env),
    demoKey: () =>
      /^DOORPLATE_API_KEY=(.+)$/m.exec(readFileSync(join(dataDir, 'demo.env'), 'utf8'))?.[1] ?? '',
    newKey: (limits = {}) => newKeyBeside(env, limits),
    ready,
    terminate: () => stop(),
    kill: async () => void (await stop('SIGKILL')),
    killPostgres: () => {
      const pid = postmasterOf(dataDir);
      if (pid === null) throw new Error('no embedded PostgreSQL runs');
      process.kill(pid, 'SIGKILL');
    },
    restart: async () => {
      start();
      await ready();
    },
    remove: async () => {
      await stop('SIGKILL');
      await removeDataFolder(dataDir);
    },
  };
  start();
  await ready().catch(async (error: unknown) => {
    await service.remove();
    throw error;
  });
  return service;
};

const newKeyBeside = async (env: Environment, limits: Partial<KeyLimits>): Promise<Key> => {
  const log = createLogger({ level: 'silent', destination: 'stderr' });
  const runtime = await openRuntime(loadConfig(env), log, 'join');
  try {
    return await makeKey(runtime, limits, ['partners']);
  } finally {
    await runtime.close();
  }
};
