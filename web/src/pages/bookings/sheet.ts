/** Bookings as a sheet: a row for each. */
import type { Reservation } from '../../api/types';
import type { Cell } from '../../design/csv';

export const COLUMNS = ['site', 'title', 'start', 'end', 'state', 'resources', 'project', 'owner', 'id'];

export function row({ site, title, start, end, state, resources, project, owner, id }: Reservation): Cell[] {
  return [site.name, title, start, end, state, resources.map(({ resource }) => resource.name).join(' '), project?.name ?? null, owner.login, id];
}
