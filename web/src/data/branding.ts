/** How the site that is looked at presents itself: its logo in the header, its colour for what is yours and what to press. */
import { apiAddress } from '../api/base';
import type { Site } from '../api/types';
import { accentTokens, parseColour } from '../design/accent';

/** The logo's address; another one for every image, so that no cache shows an old one. */
export function logoAddress(site: Pick<Site, 'name' | 'logo'>): string | undefined {
  return site.logo ? `${apiAddress()}/sites/${encodeURIComponent(site.name)}/logo?v=${encodeURIComponent(site.logo)}` : undefined;
}

/** Colours the pages below `element`, and gives what takes the colour away again. */
export function wearAccent(element: HTMLElement, accent: string | null | undefined): () => void {
  const colour = accent ? parseColour(accent) : null;
  const tokens = Object.entries(colour ? accentTokens(colour) : {});
  for (const [name, value] of tokens) element.style.setProperty(name, value);
  return () => {
    for (const [name] of tokens) element.style.removeProperty(name);
  };
}
