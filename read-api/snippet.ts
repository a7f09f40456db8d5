/** The tag to install. The id is a UUID and the origin was checked at the start: nothing needs escaping. */
export const snippetOf = (publicUrl: string, trackerId: string): string =>
  `<script async src="${publicUrl}/tracking/a.js?tracker_id=${trackerId}" data-custom='{}'></script>`;
