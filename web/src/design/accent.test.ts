import { expect, test } from 'vitest';
import { accentTokens, checkAccent, contrast, parseColour, TEXT_CONTRAST, type Rgb } from './accent';

const colour = (text: string) => parseColour(text)!;

test('contrast is that of WCAG', () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
  expect(contrast(colour('#777777'), [255, 255, 255])).toBeCloseTo(4.48, 2);
});

test('what is hardly seen is told which way to go', () => {
  expect(checkAccent(colour('#ffff00')).wants).toBe('darker');
  expect(checkAccent(colour('#000080')).wants).toBe('lighter');
  expect(checkAccent(colour('#1f77b4')).wants).toBeNull();
  expect(parseColour('blue')).toBeNull();
});

test('whatever is allowed, words keep AA on every surface', () => {
  const shades = (text: string): Rgb[] => [...text.matchAll(/rgb\((\d+) (\d+) (\d+)\)/g)].map((match) => [Number(match[1]), Number(match[2]), Number(match[3])]);
  for (const chosen of ['#1f77b4', '#d62728', '#2ca02c', '#c06000', '#8c564b', '#e377c2', '#7f7f7f']) {
    const tokens = accentTokens(colour(chosen));
    const [onPaper, atNight] = shades(tokens['--accent']!);
    const [paper, night] = shades(tokens['--accent-wash']!);
    const [fill] = shades(tokens['--accent-fill']!);
    expect(contrast(onPaper!, paper!), chosen).toBeGreaterThanOrEqual(TEXT_CONTRAST);
    expect(contrast(atNight!, night!), chosen).toBeGreaterThanOrEqual(TEXT_CONTRAST);
    expect(contrast(fill!, [255, 255, 255]), chosen).toBeGreaterThanOrEqual(TEXT_CONTRAST);
  }
});
