import { InvalidArgumentError } from 'commander';
import { hasUsualYear } from '../domain/kernel/time.ts';

/** Parses an ISO 8601 date, or a time with its zone. @throws InvalidArgumentError */
export const instant = (text: string): string => {
  const day = text.slice(0, 10);
  const real = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  const at =
    real && /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at) || !hasUsualYear(new Date(at).toISOString()))
    throw new InvalidArgumentError('not an ISO 8601 date or time with its zone');
  return new Date(at).toISOString();
};
