/** A site's logo: what may be one, and how it comes and goes. */
import { api, call, ifMatch } from '../../../api/client';
import type { Site } from '../../../api/types';

const BYTES_MAX = 128 * 1024;
const KINDS = ['image/png', 'image/webp', 'image/svg+xml'];

/** Why a file cannot be a logo; the server looks into it and has the last word. */
export function logoTrouble(file: Pick<Blob, 'size' | 'type'>): 'type' | 'size' | undefined {
  if (!KINDS.includes(file.type)) return 'type';
  return file.size > BYTES_MAX ? 'size' : undefined;
}

export function putLogo({ name, version }: Pick<Site, 'name' | 'version'>, image: Blob): Promise<Site> {
  return call(
    api.PUT('/sites/{site}/logo', {
      params: { path: { site: name }, header: ifMatch(version) },
      body: image,
      bodySerializer: (body) => body as Blob,
      headers: { 'Content-Type': image.type },
    }),
  );
}

/** Takes the logo away; gives the site as it is then, and what brings the logo back. */
export async function takeLogo(site: Site): Promise<{ after: Site; bringBack: () => Promise<void> }> {
  const path = { site: site.name };
  const image = (await call(api.GET('/sites/{site}/logo', { params: { path }, parseAs: 'blob' }))) as Blob;
  await call(api.DELETE('/sites/{site}/logo', { params: { path, header: ifMatch(site.version) } }));
  const after = { ...site, logo: null, version: site.version + 1 };
  return { after, bringBack: async () => void (await putLogo(after, image)) };
}
