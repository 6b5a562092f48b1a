import type { Messages } from '../en';

export const members: Messages['members'] = { siteAdmins: 'gli amministratori della sede' };
