import { cpus, release, totalmem, type } from 'node:os';
import type { Product } from './product.ts';

/** The hardware and software of the measurement. */
export interface Machine {
  readonly date: string;
  readonly cores: number;
  readonly cpu: string;
  readonly memory_gib: number;
  readonly kernel: string;
  readonly node: string;
  readonly postgresql: string;
  readonly store: string;
}

export const describeMachine = async (product: Product, store: string): Promise<Machine> => ({
  date: new Date().toISOString(),
  cores: cpus().length,
  cpu: cpuModel(),
  memory_gib: Math.round(totalmem() / 2 ** 30),
  kernel: `${type()} ${release()}`,
  node: process.versions.node,
  postgresql: await product.beside(async ({ pool }) => {
    const { rows } = await pool.query('show server_version');
    return rows[0].server_version as string;
  }),
  store,
});

const cpuModel = (): string => cpus()[0]?.model || 'unknown';
