/** What the bench uses of the peers, which are installed only for `npm run bench -- --peers`. */

declare module '@event-driven-io/emmett-postgresql' {
  export interface EmmettEvent {
    readonly type: string;
    readonly data: object;
    readonly metadata?: object;
  }
  interface Projection {
    readonly name?: string;
  }
  interface Store {
    readonly schema: { migrate(): Promise<unknown> };
    appendToStream(
      stream: string,
      events: readonly EmmettEvent[],
      options: { readonly expectedStreamVersion: bigint },
    ): Promise<unknown>;
    readStream(stream: string): Promise<{ readonly events: readonly EmmettEvent[] }>;
    consumer(options: {
      readonly stopWhen: { readonly noMessagesLeft: boolean };
      readonly pulling: { readonly batchSize: number; readonly pullingFrequencyInMs: number };
    }): {
      projector(options: { readonly processorId: string; readonly projection: Projection }): unknown;
      start(): Promise<void>;
    };
    close(): Promise<void>;
  }
  export function getPostgreSQLEventStore(
    url: string,
    options?: { readonly connectionOptions?: { readonly pool: import('pg').Pool } },
  ): Store;
  export function postgreSQLRawSQLProjection(options: {
    readonly name: string;
    readonly canHandle: readonly string[];
    evolve(event: EmmettEvent & { readonly metadata: { readonly streamName: string } }): string;
  }): Projection;
}

declare module 'pg-boss' {
  interface Job<T> {
    readonly id: string;
    readonly data: T;
  }
  interface JobResult {
    readonly id: string;
    readonly status: 'completed' | 'failed';
  }
  export class PgBoss {
    constructor(options: { connectionString: string; max: number; useListenNotify: boolean });
    on(event: 'error', listener: (error: Error) => void): void;
    start(): Promise<unknown>;
    createQueue(name: string, options: object): Promise<void>;
    insert(name: string, jobs: readonly { data: object; [option: string]: unknown }[]): Promise<unknown>;
    work<T>(
      name: string,
      options: object,
      handle: (jobs: readonly Job<T>[]) => Promise<JobResult[]>,
    ): Promise<string>;
  }
}

declare module 'graphile-worker' {
  interface Preset {
    readonly worker: object;
  }
  export class Logger {
    constructor(factory: () => (level: string, message: string) => void);
  }
  export function makeWorkerUtils(options: { readonly preset: Preset }): Promise<{
    migrate(): Promise<void>;
    addJobs(
      jobs: readonly {
        readonly identifier: string;
        readonly payload: object;
        readonly maxAttempts: number;
      }[],
    ): Promise<unknown>;
  }>;
  export function run(options: {
    readonly preset: Preset;
    readonly taskList: Readonly<Record<string, (payload: unknown) => Promise<void>>>;
  }): Promise<unknown>;
}
