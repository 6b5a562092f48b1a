import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GUIDES } from './guides';

test.each(GUIDES)('docs/%s.md is there to be read', (guide) => {
  expect(existsSync(`../docs/${guide}.md`)).toBe(true);
});
