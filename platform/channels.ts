/** Notified when an enrichment attempt or the check of a domain has become due, or will. */
export const DUE_CHANNEL = 'doorplate_due';
