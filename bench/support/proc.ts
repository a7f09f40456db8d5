export { cpuOf, cpuOfFamily, residentMemory } from '../../cli/capacity/processes.ts';
