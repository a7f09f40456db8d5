/** What one check of `doorplate doctor` found. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  /** What to do; null if nothing is wrong. */
  readonly fix: string | null;
}

export type Result = Omit<Check, 'name'>;

export const good = (detail: string): Result => ({ ok: true, detail, fix: null });
export const bad = (detail: string, fix: string): Result => ({ ok: false, detail, fix });
