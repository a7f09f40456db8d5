import type pg from 'pg';
import type { Position } from '../event-store/port.ts';
import type { Lease } from '../platform/leases/leases.ts';
import { commitSteps, markStopped, ProjectionFailed, type Step } from './checkpoints.ts';

interface Isolation {
  readonly db: pg.ClientBase;
  readonly lease: Lease;
  readonly onStopped: (name: string, stoppedBy: string) => void;
}

/**
 * Applies a batch to all projections, or to each alone if one fails.
 * @returns false if a poison event stopped a projection; the others have then applied the batch
 */
export const commitOrIsolate = async (
  options: Isolation,
  steps: readonly Step[],
  to: Position,
): Promise<boolean> => {
  const { db, lease } = options;
  try {
    await commitSteps(db, lease, steps, to);
    return true;
  } catch (error) {
    if (!(error instanceof ProjectionFailed)) throw error;
  }
  let allApplied = true;
  for (const step of steps) if (!(await applyAlone(options, step, to))) allApplied = false;
  return allApplied;
};

/** Applies a batch to one projection; if it fails, event by event up to the poison event. */
const applyAlone = async (
  { db, lease, onStopped }: Isolation,
  step: Step,
  to: Position,
): Promise<boolean> => {
  const { projection, events } = step;
  try {
    await commitSteps(db, lease, [step], to);
    return true;
  } catch (error) {
    if (!(error instanceof ProjectionFailed)) throw error;
  }
  let { from, passed } = step;
  for (const event of events) {
    try {
      const alone = [{ projection, from, passed, events: [event] }];
      await commitSteps(db, lease, alone, event.position);
      from = event.position;
      passed = event.position;
    } catch (error) {
      if (!(error instanceof ProjectionFailed)) throw error;
      const stoppedBy = `${event.type} at revision ${event.revision} of ${event.stream}: ${error.message}`;
      await markStopped(db, projection.name, stoppedBy);
      onStopped(projection.name, stoppedBy);
      return false;
    }
  }
  await commitSteps(db, lease, [{ projection, from, passed, events: [] }], to);
  return true;
};
