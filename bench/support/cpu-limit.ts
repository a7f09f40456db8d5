import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PERIOD_MICROS = 100_000;
/** Version 1 has a hierarchy for each controller. */
const V1 = '/sys/fs/cgroup/cpu';
const V2 = '/sys/fs/cgroup';

/**
 * Limits a process to a share of a core by a control group of its own (root alone; Linux).
 * @returns takes the group away once the process has ended
 */
export const limitCpu = (pid: number, share: number): (() => void) => {
  const isV1 = existsSync(V1);
  const group = join(isV1 ? V1 : V2, `doorplate-bench-${pid}`);
  mkdirSync(group);
  const quota = Math.round(share * PERIOD_MICROS);
  if (isV1) {
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_MICROS));
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quota));
  } else {
    writeFileSync(join(group, 'cpu.max'), `${quota} ${PERIOD_MICROS}`);
  }
  writeFileSync(join(group, 'cgroup.procs'), String(pid));
  return () => rmdirSync(group);
};
