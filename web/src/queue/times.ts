/** The one or two moments that matter about a workload now, in words. */
import type { Messages } from '../i18n/en';
import type { Formats } from '../i18n/format';
import { isOver, type Workload } from './types';

export interface Times {
  readonly first: string;
  readonly second: string;
}

export function timesOf(workload: Workload, now: number, t: Messages, format: Formats): Times {
  if (isOver(workload.state)) {
    const ended = workload.ended_at ?? workload.since;
    return { first: t.queue.endedAt(format.relative(ended, now)), second: format.dayAndTime(ended) };
  }
  if (workload.state === 'RUNNING') {
    // Lists have only the runs that go on; a workload's own page has those that are over, too.
    const going = workload.runs.filter(({ state }) => state !== 'ended');
    const began = Math.min(now, ...going.map((run) => Date.parse(run.began)));
    const until = Math.max(...going.map((run) => Date.parse(run.until)));
    return {
      first: t.queue.runsFor(lengthUp(now - began, format)),
      second: Number.isFinite(until) ? t.queue.endsBy(clock(until, now, format)) : '',
    };
  }
  return { first: startWords(workload, now, t, format), second: t.queue.waitsFor(lengthUp(now - Date.parse(workload.since), format)) };
}

/** "starts today 14:20, probably". */
export function startWords({ waits }: Pick<Workload, 'waits'>, now: number, t: Messages, format: Formats): string {
  if (waits?.promised) return t.queue.startsBy(clock(Math.max(now, Date.parse(waits.promised)), now, format));
  if (waits?.forecast) return t.queue.startsAbout(clock(Math.max(now, Date.parse(waits.forecast)), now, format));
  return t.queue.noForecast;
}

/** The time alone on the same day, as one says it. */
export function clock(moment: number, now: number, format: Formats): string {
  return format.day(moment) === format.day(now) ? format.time(moment) : format.dayAndTime(moment);
}

/** To the minute, and never "0 min". */
function lengthUp(milliseconds: number, format: Formats): string {
  const minute = 60_000;
  return format.length(Math.max(minute, Math.round(milliseconds / minute) * minute));
}
