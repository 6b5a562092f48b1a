export const members = { siteAdmins: 'the site’s admins' };
