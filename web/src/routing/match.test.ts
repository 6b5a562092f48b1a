import { expect, test } from 'vitest';
import { fill, match } from './match';

test('named parts are found', () => {
  expect(match('/sites/:site/resources/:resource', '/sites/torino/resources/gpu-01.gpu0')).toEqual({
    site: 'torino',
    resource: 'gpu-01.gpu0',
  });
  expect(match('/sites/:site', '/sites/torino/')).toEqual({ site: 'torino' });
  expect(match('/sites/:site', '/sites')).toBeNull();
  expect(match('/find', '/finds')).toBeNull();
});

test('what is filled in is found again', () => {
  const path = fill('/a/:x', { x: 'ü /%' });
  expect(match('/a/:x', path)).toEqual({ x: 'ü /%' });
});

test('a broken escape does not break the page', () => {
  expect(match('/a/:x', '/a/%zz')).toEqual({ x: '%zz' });
});

test('a part that is missing is a defect', () => {
  expect(() => fill('/a/:x', {})).toThrow(':x');
});
