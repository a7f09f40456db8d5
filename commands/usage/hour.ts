import { HOUR } from '../../domain/kernel/time.ts';
import { iso } from '../../platform/clock/clock.ts';

/** Formats the UTC hour of an instant as `YYYY-MM-DDTHH`, caching the last one. */
export const hourOf = (() => {
  let known = { number: -1, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / HOUR);
    if (number !== known.number) known = { number, text: iso(at).slice(0, 13) };
    return known.text;
  };
})();
