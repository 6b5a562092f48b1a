/** `npm run screenshots`: every page in light, dark and on a phone, for eyes. The pictures are not part of the repository. */
import base from './playwright.config';

export default { ...base, testMatch: '**/screenshots.ts', timeout: 600_000 };
