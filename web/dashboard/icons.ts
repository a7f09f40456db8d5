import { MARK } from '../../http/docs/mark.ts';
import { type Html, html } from './components.ts';

/** Paths of a grid of 20, drawn as lines. */
const ICONS = {
  Home: 'M3 9.2 10 3.3l7 5.9V16a1 1 0 0 1-1 1h-3.4v-4.8H7.4V17H4a1 1 0 0 1-1-1z',
  Companies:
    'M4.5 17V4.2a1 1 0 0 1 1-1h5.3a1 1 0 0 1 1 1V17m0-9h2.7a1 1 0 0 1 1 1v8M2.8 17h14.4M7.3 6.7H9M7.3 10H9m-1.7 3.3H9',
  Sessions: 'M2.5 10.4h3.2L8.2 4l3.7 12 2.5-5.6h3.1',
  'Look up': 'M8.8 14.3a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zm4-1.5 4 4',
  Websites: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM3.2 10h13.6M10 3c4 4.2 4 9.8 0 14-4-4.2-4-9.8 0-14z',
  Webhooks: 'M17 3.2 9.2 11M17 3.2 12.2 17 9.2 11 3.2 8z',
  Keys: 'M12.6 11.2a3.9 3.9 0 1 0-3.7-2.7L3.2 14.2v2.6h2.7v-2h2v-2l1.5-1.5a3.9 3.9 0 0 0 3.2-.1zm.6-4.4h.01',
  'Usage and billing': 'M3.8 17v-5.5M8 17V8m4.1 9V5.5m4.1 11.5v-7',
  Settings:
    'M3 6.2h7.4m4 0H17M3 13.8h2.6m4 0H17M12.4 8.2a2 2 0 1 0 0-4 2 2 0 0 0 0 4zm-4.8 7.6a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
} as const;

export const icon = (name: keyof typeof ICONS): Html =>
  html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;

export const mark = (): Html =>
  html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="${MARK[0]}"/><path d="${MARK[1]}"/></svg>`;
