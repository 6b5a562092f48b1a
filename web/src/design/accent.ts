/**
 * A site's own colour, made fit for text.
 *
 * A site chooses one colour that is seen on white and on near-black. Words need more contrast than shapes, so the shades that
 * carry words are darkened on paper and lightened at night until WCAG's AA holds on every surface they stand on.
 */

export type Rgb = readonly [number, number, number];

/** What WCAG 2.2 asks of shapes, and of text. */
export const SHAPE_CONTRAST = 3;
export const TEXT_CONTRAST = 4.5;

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [0, 0, 0];
/** The pages that the server measures an accent against. */
const PAPER = WHITE;
const NIGHT: Rgb = [0x12, 0x12, 0x12];
/** The surfaces of tokens.css that accented text stands on: the darkest of paper, the lightest of night. */
const PAPER_SUNKEN: Rgb = [0xec, 0xef, 0xf2];
const NIGHT_SURFACE: Rgb = [0x17, 0x1b, 0x20];
const NIGHT_RAISED: Rgb = [0x1e, 0x23, 0x2a];

export function parseColour(text: string): Rgb | null {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  return match ? [channel(match[1]!), channel(match[2]!), channel(match[3]!)] : null;
}

const channel = (hex: string) => Number.parseInt(hex, 16);

/** From 1 to 21, as WCAG defines it. */
export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export interface AccentCheck {
  readonly onPaper: number;
  readonly atNight: number;
  /** Which way to go, where it is hardly seen. */
  readonly wants: 'darker' | 'lighter' | null;
}

/** The server's own judgement, before it is asked. */
export function checkAccent(colour: Rgb): AccentCheck {
  const onPaper = contrast(colour, PAPER);
  const atNight = contrast(colour, NIGHT);
  return { onPaper, atNight, wants: onPaper < SHAPE_CONTRAST ? 'darker' : atNight < SHAPE_CONTRAST ? 'lighter' : null };
}

/** The variables of tokens.css that an accent sets. */
export function accentTokens(colour: Rgb): Readonly<Record<string, string>> {
  const wash = { paper: mix(WHITE, colour, 0.12), night: mix(NIGHT_SURFACE, colour, 0.2) };
  const text = { paper: towards(BLACK, colour, [PAPER_SUNKEN, wash.paper]), night: towards(WHITE, colour, [NIGHT_RAISED, wash.night]) };
  const fill = towards(BLACK, colour, [WHITE]);
  return {
    '--accent': lightDark(text.paper, text.night),
    '--accent-fill': css(fill),
    '--accent-hover': css(mix(fill, BLACK, 0.18)),
    '--accent-wash': lightDark(wash.paper, wash.night),
  };
}

/** The colour, moved towards another only as far as text needs it on all of these surfaces. */
function towards(goal: Rgb, colour: Rgb, surfaces: readonly Rgb[]): Rgb {
  for (let share = 0; share < 1; share += 0.02) {
    const moved = mix(colour, goal, share);
    if (surfaces.every((surface) => contrast(moved, surface) >= TEXT_CONTRAST)) return moved;
  }
  return goal;
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return from.map((value, index) => Math.round(value + (to[index]! - value) * share)) as unknown as Rgb;
}

const css = (colour: Rgb) => `rgb(${colour.join(' ')})`;
const lightDark = (light: Rgb, dark: Rgb) => `light-dark(${css(light)}, ${css(dark)})`;
