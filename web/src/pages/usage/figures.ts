/** What the server tells of use, as the tables behind the charts. */
import type { Outcomes, Usage, UsageShare } from '../../api/types';
import type { Figures } from '../../charts/figures';
import type { Formats } from '../../i18n/format';
import type { Messages } from '../../i18n/en';
import { refusalWords } from './words';

const HOUR_S = 3_600;

export const share = (seconds: { used_s: number; available_s: number }): number | null => (seconds.available_s > 0 ? seconds.used_s / seconds.available_s : null);

/** Hours of one resource each, to a tenth. */
export const hours = (seconds: number): number => Math.round(seconds / (HOUR_S / 10)) / 10;

export interface Ranked {
  readonly key: string;
  readonly label: string;
  readonly hint?: string;
  readonly used_s: number;
  readonly bookings: number;
  /** The seconds of each bucket. */
  readonly course: readonly number[];
}

/** Writes the tables of one answer, in one language. */
export class UsageFigures {
  constructor(
    readonly usage: Usage,
    readonly t: Messages,
    readonly format: Formats,
  ) {}

  readonly #percent = (value: number) => this.format.percent(value, 1);
  readonly #number = (value: number) => this.format.number(value);

  get #useColumns() {
    const { t } = this;
    return [
      { label: t.usage.utilisation, show: this.#percent },
      { label: t.usage.usedHours, show: this.#number },
      { label: t.usage.availableHours, show: this.#number },
    ];
  }

  #use(seconds: { used_s: number; available_s: number }) {
    return [share(seconds), hours(seconds.used_s), hours(seconds.available_s)];
  }

  bucketName(index: number): string {
    const { start, end } = this.usage.buckets[index]!;
    if (this.usage.bucket === 'hour') return this.format.dayAndTime(start);
    return this.usage.bucket === 'day' ? this.format.day(start) : `${this.format.day(start)} – ${this.format.day(Date.parse(end) - 1)}`;
  }

  course(): Figures {
    const { t, usage } = this;
    const rows = usage.all.by_bucket.map((seconds, index) => [this.bucketName(index), ...this.#use(seconds)]);
    return { columns: [{ label: t.common.when }, ...this.#useColumns], rows };
  }

  types(): Figures {
    const { t, usage } = this;
    return {
      columns: [{ label: t.common.type }, { label: t.common.resources, show: this.#number }, ...this.#useColumns],
      rows: usage.types.map((one) => [one.type.title, one.resources, ...this.#use(one)]),
    };
  }

  /** The same with each type's course, which is too wide for paper. */
  typesInTime(): Figures {
    const { columns, rows } = this.types();
    const { buckets, types } = this.usage;
    return {
      columns: [...columns, ...buckets.map((_, index) => ({ label: this.bucketName(index), show: this.#percent }))],
      rows: rows.map((row, index) => [...row, ...types[index]!.by_bucket.map(share)]),
    };
  }

  ranked(label: string, items: readonly Ranked[]): Figures {
    const { t } = this;
    const all = this.usage.all.available_s;
    return {
      columns: [
        { label },
        { label: t.usage.shareOfAll, show: this.#percent },
        { label: t.usage.usedHours, show: this.#number },
        { label: t.usage.bookings, show: this.#number },
      ],
      rows: items.map((item) => [item.label, all > 0 ? item.used_s / all : null, hours(item.used_s), item.bookings]),
    };
  }

  /** The same with the hours of each bucket, which is too wide for paper. */
  rankedInTime(label: string, items: readonly Ranked[]): Figures {
    const { columns, rows } = this.ranked(label, items);
    return {
      columns: [...columns, ...this.usage.buckets.map((_, index) => ({ label: this.bucketName(index), show: this.#number }))],
      rows: rows.map((row, index) => [...row, ...items[index]!.course.map(hours)]),
    };
  }

  people(): Ranked[] {
    const { items, rest } = this.usage.people;
    const named = items.map(({ person, used_s, used_s_by_bucket: course, bookings }) => ({ key: person.id, label: person.display_name, hint: person.login, used_s, bookings, course }));
    return [...named, ...this.#rest(rest)];
  }

  projects(): Ranked[] {
    const { items, rest } = this.usage.projects;
    const named = items.map(({ project, used_s, used_s_by_bucket: course, bookings }) => ({
      key: project?.id ?? 'none',
      label: project?.title ?? this.t.usage.noProject,
      ...(project ? { hint: project.name } : {}),
      used_s,
      bookings,
      course,
    }));
    return [...named, ...this.#rest(rest)];
  }

  #rest({ count, used_s, used_s_by_bucket: course, bookings }: UsageShare & { count: number }): Ranked[] {
    return count > 0 ? [{ key: 'rest', label: this.t.usage.rest(count), used_s, bookings, course }] : [];
  }

  week(): Figures {
    const { t, usage } = this;
    return {
      columns: [{ label: t.common.day }, { label: t.usage.hour }, ...this.#useColumns],
      rows: usage.week.map((seconds, index) => [this.format.weekday(Math.floor(index / 24) + 1, 'long'), clock(index % 24), ...this.#use(seconds)]),
    };
  }

  leadTimes(): Figures {
    const { t, usage } = this;
    const bars = usage.lead_times.histogram.map((bar, index) => [this.leadName(index), bar.bookings]);
    const quantiles = usage.lead_times.quantiles.map(({ percent, lead_s }) => [t.usage.quantile(percent), this.format.length(lead_s * 1000)]);
    return { columns: [{ label: t.usage.madeAhead }, { label: t.usage.bookings, show: this.#number }], rows: [...bars, ...quantiles] };
  }

  leadName(index: number): string {
    const { t, usage } = this;
    const { histogram } = usage.lead_times;
    const below = histogram[index]?.below_s;
    const from = histogram[index - 1]?.below_s;
    if (below === null || below === undefined) return t.usage.leadOver(this.format.length((from ?? 0) * 1000));
    return t.usage.leadUnder(this.format.length(below * 1000));
  }

  outcomes(): Figures {
    const { t } = this;
    return {
      columns: [{ label: t.usage.outcome }, { label: t.usage.bookings, show: this.#number }],
      rows: [[t.usage.outcomes.bookings, this.usage.outcomes.bookings], ...this.outcomeList().map(({ label, value }): [string, number] => [label, value])],
    };
  }

  /** What did not take place, and why. */
  outcomeList(): { key: keyof Outcomes; label: string; value: number }[] {
    const kinds = ['no_shows', 'cancelled', 'cancelled_late', 'rejected', 'failed'] as const;
    return kinds.map((key) => ({ key, label: this.t.usage.outcomes[key], value: this.usage.outcomes[key] }));
  }

  refusals(): Figures {
    const { t } = this;
    return {
      columns: [{ label: t.usage.reason }, { label: t.usage.times, show: this.#number }, { label: t.usage.code }],
      rows: (this.usage.refusals ?? []).map((one) => [refusalWords(one, t), one.count, one.rule ? `${one.code} ${one.rule}` : one.code]),
    };
  }
}

export const clock = (hour: number): string => `${String(hour).padStart(2, '0')}:00`;
