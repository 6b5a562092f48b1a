/** The pages of the documentation that the server serves under /docs, and that pages link to where the question arises. */
export const GUIDES = ['calendars', 'configuration', 'desk', 'environments', 'files', 'notifications', 'policies', 'queue', 'rights', 'series', 'usage'] as const;
export type Guide = (typeof GUIDES)[number];
