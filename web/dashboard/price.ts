/** What units cost at the price that the operator names (`UNIT_PRICE`): for display alone, since no price is stored. */
import type { UnitPrice } from './api.ts';
import { type Content, counted, html } from './components.ts';

/** Places of a price's integer: a millionth of the currency's unit. */
const PLACES = 6;

const digitsOf = (currency: string): number =>
  new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;

/** Writes an integer of so many decimal places: 1234 with 2 as 12.34. */
function decimal(value: bigint, places: number): `${number}` {
  const text = value.toString().padStart(places + 1, '0');
  return (places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`) as `${number}`;
}

/** What units cost in all, rounded to the currency's smallest coin once, half of one upwards: `0.36`. */
export function amountOf({ millionths, currency }: UnitPrice, units: number): `${number}` {
  const places = Math.min(digitsOf(currency), PLACES);
  const step = 10n ** BigInt(PLACES - places);
  return decimal((BigInt(millionths) * BigInt(units) + step / 2n) / step, places);
}

const written = (currency: string, amount: `${number}`, most?: number): string =>
  new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
    currencyDisplay: 'code',
    ...(most === undefined ? {} : { maximumFractionDigits: most }),
  }).format(amount);

/** `EUR 0.36`. */
export const moneyText = (price: UnitPrice, units: number): string =>
  written(price.currency, amountOf(price, units));

/** The price of one unit with all its places: `EUR 0.125`. */
export const unitPriceText = ({ millionths, currency }: UnitPrice): string =>
  written(currency, decimal(BigInt(millionths), PLACES), PLACES);

/** `3 units`, and what they cost where a price is set. `price` null: none is. */
export const unitsText = (price: UnitPrice | null, units: number): string =>
  `${counted(units, 'unit')}${price === null ? '' : ` (${moneyText(price, units)} at today’s price)`}`;

/** What a page with amounts says of them. */
export const priceNote = (price: UnitPrice | null): Content =>
  price &&
  html`<p class="soft">Amounts are at today’s price of a unit, ${unitPriceText(price)}. The ledger holds units alone.</p>`;

/** Columns of a CSV file with amounts, where a price is set. */
export const amountHeads = (price: UnitPrice | null): readonly string[] =>
  price === null ? [] : ['amount_today', 'currency'];
export const amountCells = (price: UnitPrice | null, units: number): readonly string[] =>
  price === null ? [] : [amountOf(price, units), price.currency];
