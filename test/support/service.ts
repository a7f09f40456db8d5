/** The product as its operator runs it: a separate process, reached only over HTTP and by the command. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRuntime } from '../../bin/runtime.ts';
import type { KeyLimits } from '../../domain/partners/events.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { type Called, type CallOptions, call } from './call.ts';
import { makeDataFolder, postmasterOf, removeDataFolder } from './data-folder.ts';
import {
  doorplateHere,
  type Ended,
  type Environment,
  MASTER_KEY,
  type Running,
  startDoorplate,
} from './doorplate.ts';
import { eventually } from './eventually.ts';
import { type Key, makeKey } from './keys.ts';
import { freePort } from './ports.ts';
import { reap } from './reaped.ts';

const READY_MS = 50_000;

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
  const dataDir = makeDataFolder();
  reap({ folder: dataDir });
  const port = await freePort();
  const opsPort = await freePort();
  const env: Environment = {
    DATA_DIR: dataDir,
    PORT: String(port),
    OPS_PORT: String(opsPort),
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl, MASTER_KEY }),
    ...more,
  };
  const url = `http://127.0.0.1:${port}`;
  let running: Running = startDoorplate(['serve', '--role', role], env);

  const isReady = async (): Promise<boolean> => {
    if (running.child.exitCode !== null) throw new Error(`the service has ended:\n${running.stderr()}`);
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => null);
    return answer?.status === 200;
  };
  const ready = async (): Promise<void> => {
    await eventually('the service is ready', isReady, Boolean, READY_MS);
  };
  const cli = (...args: string[]): Promise<Ended> => doorplateHere(args, env);

  const service: Service = {
    url,
    dataDir,
    env,
    get pid() {
      return running.child.pid as number;
    },
    stdout: () => running.stdout(),
    stderr: () => running.stderr(),
    call: (method, path, call_ = {}) => call(url, method, path, call_),
    cli,
    demoKey: () =>
      /^DOORPLATE_API_KEY=(.+)$/m.exec(readFileSync(join(dataDir, 'demo.env'), 'utf8'))?.[1] ?? '',
    newKey: (limits = {}) => newKeyBeside(env, limits),
    ready,
    terminate: () => {
      running.child.kill('SIGTERM');
      return running.ended;
    },
    kill: async () => {
      running.child.kill('SIGKILL');
      await running.ended;
    },
    killPostgres: () => {
      const pid = postmasterOf(dataDir);
      if (pid === null) throw new Error('no embedded PostgreSQL runs');
      process.kill(pid, 'SIGKILL');
    },
    restart: async () => {
      running = startDoorplate(['serve', '--role', role], env);
      await ready();
    },
    remove: async () => {
      running.child.kill('SIGKILL');
      await running.ended;
      await removeDataFolder(dataDir);
    },
  };
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
