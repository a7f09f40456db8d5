/** The product's mark: a plate with two screws and a name, as it is screwed to a door. Drawn on a grid of 24. */
export const MARK = [
  'M6 1h12a5 5 0 0 1 5 5v12a5 5 0 0 1-5 5H6a5 5 0 0 1-5-5V6a5 5 0 0 1 5-5z',
  'M6 7.5h12A1.5 1.5 0 0 1 19.5 9v6a1.5 1.5 0 0 1-1.5 1.5H6A1.5 1.5 0 0 1 4.5 15V9A1.5 1.5 0 0 1 6 7.5zM7 11.2a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6zm10 0a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6zM9.6 11v2h4.8v-2z',
] as const;

/** The mark as the address of an image, which costs no request. */
export const FAVICON = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#2451b8" d="${MARK[0]}"/><path fill="#fff" fill-rule="evenodd" d="${MARK[1]}"/></svg>`,
)}`;
