/** The API's types by their names. */
export type * from './schema';
