// What a locale says about weeks, and formatters that are made once: making one costs more than a hundred uses.

interface WeekInfo {
  firstDay: number;
  weekend: number[];
}

type LocaleWithWeeks = Intl.Locale & { getWeekInfo?: () => WeekInfo; weekInfo?: WeekInfo };

/** Most of the world; for browsers that do not know weeks by locale yet. */
const ISO_WEEK: WeekInfo = { firstDay: 1, weekend: [6, 7] };

const weeks = new Map<string, WeekInfo>();
const dates = new Map<string, Intl.DateTimeFormat>();

function weekOf(locale: string): WeekInfo {
  let week = weeks.get(locale);
  if (!week) {
    const known = new Intl.Locale(locale) as LocaleWithWeeks;
    week = known.getWeekInfo?.() ?? known.weekInfo ?? ISO_WEEK;
    weeks.set(locale, week);
  }
  return week;
}

/** 1 is Monday and 7 is Sunday. */
export function firstDayOfWeek(locale: string): number {
  return weekOf(locale).firstDay;
}

export function isWeekend(weekday: number, locale: string): boolean {
  return weekOf(locale).weekend.includes(weekday);
}

export function dateFormat(locale: string, zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${locale} ${zone} ${JSON.stringify(options)}`;
  let format = dates.get(key);
  if (!format) dates.set(key, (format = new Intl.DateTimeFormat(locale, { ...options, timeZone: zone })));
  return format;
}
