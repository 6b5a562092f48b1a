import { expect, test } from 'vitest';
import { en } from '../i18n/en';
import { Formats } from '../i18n/format';
import { it as italian } from '../i18n/it';
import { ruleWords } from './rule-words';

const english = (rule: string) => ruleWords(rule, en, new Formats('en-GB', 'Europe/Rome', en.timeline.units));

test('the rules that the app makes are told in words', () => {
  expect(english('FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10')).toBe('every week, Monday and Wednesday, 10 times');
  expect(english('FREQ=DAILY;INTERVAL=2;UNTIL=20261224')).toBe('every 2 days, until 24 Dec 2026');
  expect(ruleWords('FREQ=MONTHLY;COUNT=1', italian, new Formats('it', 'Europe/Rome', italian.timeline.units))).toBe('ogni mese, una volta');
});

test('and others as they are', () => {
  expect(english('FREQ=MONTHLY;BYDAY=1TU;COUNT=6')).toBe('FREQ=MONTHLY;BYDAY=1TU;COUNT=6');
});
