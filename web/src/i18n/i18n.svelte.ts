/** The language that is spoken now. English is always there; another language comes when it is asked for. */
import { en, type Messages } from './en';

export const LOCALES = ['en', 'it'] as const;
export type Locale = (typeof LOCALES)[number];

/** What Intl formats with: English as most of Berth's readers write dates, with the day before the month. */
const INTL: Record<Locale, string> = { en: 'en-GB', it: 'it' };

const load: Record<Locale, () => Promise<Messages>> = {
  en: () => Promise.resolve(en),
  it: async () => (await import('./it')).it,
};

class I18n {
  locale = $state<Locale>('en');
  /** The messages of the language. Read inside a template or a `$derived`, they follow a change of language. */
  t = $state.raw<Messages>(en);

  get intl(): string {
    return INTL[this.locale];
  }

  async use(locale: Locale): Promise<void> {
    const messages = await load[locale]();
    this.t = messages;
    this.locale = locale;
    document.documentElement.lang = locale;
  }
}

export const i18n = new I18n();

/** The first of the browser's languages that Berth speaks. */
export function preferredLocale(languages: readonly string[]): Locale {
  for (const language of languages) {
    const known = LOCALES.find((locale) => language.toLowerCase().split('-')[0] === locale);
    if (known) return known;
  }
  return 'en';
}
