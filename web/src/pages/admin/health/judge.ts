/** What a running server says of itself, judged as `berth doctor --running` judges it. */
import type { ControllerHealth, HealthReport } from '../../../api/types';

export type Level = 'good' | 'warn' | 'bad';

/** What waits longer than this for its number, readers miss. */
const SEQUENCER_LATE_S = 10;
/** How much later than its pause a controller may be before it is worth a look. */
const LATE_S = 30;
const MIB = 2 ** 20;
const DISK_FULL = 100 * MIB;
const DISK_LOW = 1024 * MIB;
/** Clocks that differ by more make times on the pages look wrong. */
const CLOCK_MS = 60_000;

export type ControllerTrouble = 'never' | 'stuck' | 'late' | 'stale';

export function controllerTrouble(one: ControllerHealth): ControllerTrouble | null {
  if (!one.holder) return 'never';
  if (typeof one.gave_up_s === 'number') return 'stuck';
  if (one.lag_s > one.pause_s + LATE_S) return 'late';
  return (one.last_round_s ?? 0) > 2 * one.pause_s + LATE_S ? 'stale' : null;
}

export const CONTROLLER_LEVEL: Record<ControllerTrouble, Level> = { never: 'bad', stuck: 'bad', late: 'bad', stale: 'warn' };

export function diskLevel(free: number): Level {
  if (free < DISK_FULL) return 'bad';
  return free < DISK_LOW ? 'warn' : 'good';
}

export type Trouble = 'disk_full' | 'disk_low' | 'schema' | 'sequencer' | 'clock' | 'no_sandbox' | 'server_user' | 'no_sandbox_server_user';

export interface Finding {
  readonly trouble: Trouble | ControllerTrouble;
  readonly level: Level;
  /** The controller it is about. */
  readonly controller?: string;
}

/** Everything that wants somebody, the worst first. */
export function findings(report: HealthReport, browserNow: number): Finding[] {
  const { database } = report;
  const disk = database.disk ? diskLevel(database.disk.free_bytes) : 'good';
  const found: Finding[] = [
    ...(disk === 'bad' ? [{ trouble: 'disk_full', level: disk } as const] : disk === 'warn' ? [{ trouble: 'disk_low', level: disk } as const] : []),
    ...(report.sequencer_lag_s > SEQUENCER_LATE_S ? [{ trouble: 'sequencer', level: 'bad' } as const] : []),
    ...report.controllers.flatMap((one) => {
      const trouble = controllerTrouble(one);
      return trouble ? [{ trouble, level: CONTROLLER_LEVEL[trouble], controller: one.name }] : [];
    }),
    ...(report.weak_boundary ? [{ trouble: report.weak_boundary, level: 'bad' } as const] : []),
    ...(database.schema_pending.length > 0 ? [{ trouble: 'schema', level: 'warn' } as const] : []),
    ...(Math.abs(Date.parse(report.now) - browserNow) > CLOCK_MS ? [{ trouble: 'clock', level: 'warn' } as const] : []),
  ];
  return found.sort((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'));
}
