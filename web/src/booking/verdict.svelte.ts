/**
 * What the server would say, asked while a person is still typing.
 *
 * Nothing is booked by asking. The answer belongs to the question it was asked for: as soon as the draft changes it is shown
 * as old, and a late answer to an older question is dropped.
 */
import { api, call } from '../api/client';
import { asFailure, Failure } from '../api/problem';
import type { NewReservation, NewSeries, PolicyFindings, ReservationPreview, SeriesPreview } from '../api/types';
import type { BookingDraft } from './draft.svelte';
import { plausible, toSend } from './parameters';
import { toRule } from './repeat';

export interface Verdict {
  readonly accepted: boolean;
  /** It would wait for somebody's leave. */
  readonly needsApproval: boolean;
  readonly refusal?: Failure;
  readonly series?: SeriesPreview;
  readonly findings?: PolicyFindings;
}

const PAUSE_MS = 250;
/** The server wants a title even to think about it. */
const UNTITLED = '…';

export class Judgement {
  verdict = $state.raw<Verdict | undefined>();
  failure = $state.raw<Failure | undefined>();
  isAsking = $state(false);
  #turn = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Asks soon; called from an effect, so that it reads the whole draft at once and is called again when it changes. */
  consider(draft: BookingDraft, now: number): void {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    if (draft.wanted.length === 0 || !draft.isTimeRight) {
      this.verdict = undefined;
      this.isAsking = false;
      return;
    }
    const question = questionOf(draft, now);
    this.isAsking = true;
    this.#timer = setTimeout(() => void this.#ask(draft.site, question, turn), PAUSE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#turn += 1;
  }

  async #ask(site: string, question: Question, turn: number): Promise<void> {
    try {
      const [verdict, findings] = await Promise.all([
        'rule' in question ? askSeries(site, question) : askOne(site, question),
        askPolicies(site, question),
      ]);
      if (turn !== this.#turn) return;
      this.verdict = { ...verdict, ...(findings ? { findings } : {}) };
      this.failure = undefined;
    } catch (thrown) {
      if (turn !== this.#turn) return;
      this.failure = asFailure(thrown);
    }
    this.isAsking = false;
  }
}

type Question = NewReservation | NewSeries;

function questionOf(draft: BookingDraft, now: number): Question {
  const parameters = plausible(draft.types, draft.answers, new Date(now).toISOString().slice(0, 10));
  return requestOf(draft, draft.title.trim() || UNTITLED, parameters);
}

/** What is sent when it is meant. */
export function requestFor(draft: BookingDraft): Question {
  return requestOf(draft, draft.title.trim(), toSend(draft.types, draft.answers));
}

function requestOf(draft: BookingDraft, title: string, parameters: NewReservation['parameters']): Question {
  const request: NewReservation = {
    title,
    ...draft.moments(),
    resources: draft.wantedResources(),
    ...(parameters ? { parameters } : {}),
    ...(draft.isPrivate ? { privacy: 'private' } : {}),
    ...(draft.project ? { project: draft.project } : {}),
    ...(draft.onBehalfOf ? { on_behalf_of: draft.onBehalfOf } : {}),
  };
  if (!draft.repeat) return request;
  return { ...request, rule: toRule(draft.repeat), on_conflict: draft.skipConflicts ? 'skip' : 'refuse' };
}

async function askOne(site: string, body: NewReservation): Promise<Verdict> {
  const params = { path: { site }, query: { dry_run: true } };
  const preview = (await call(api.POST('/sites/{site}/reservations', { params, body }))) as ReservationPreview;
  return {
    accepted: preview.accepted,
    needsApproval: preview.state === 'pending_approval',
    ...(preview.refusal ? { refusal: Failure.of(preview.refusal) } : {}),
  };
}

async function askSeries(site: string, body: NewSeries): Promise<Verdict> {
  const params = { path: { site }, query: { dry_run: true } };
  try {
    const series = (await call(api.POST('/sites/{site}/series', { params, body }))) as SeriesPreview;
    const needsApproval = series.instances.some((instance) => instance.state === 'pending_approval');
    return { accepted: series.accepted, needsApproval, series };
  } catch (thrown) {
    // A rule that gives no days is refused as a whole.
    const failure = asFailure(thrown);
    if (failure.problem) return { accepted: false, needsApproval: false, refusal: failure };
    throw failure;
  }
}

async function askPolicies(site: string, question: Question): Promise<PolicyFindings | undefined> {
  const { start, end, resources, project, on_behalf_of } = question;
  const body = { start, end, resources, ...(project ? { project } : {}), ...(on_behalf_of ? { on_behalf_of } : {}) };
  try {
    return await call(api.POST('/sites/{site}/policy/test', { params: { path: { site } }, body }));
  } catch (thrown) {
    // The refusal of the booking itself says more than that its policies could not be tested.
    if (asFailure(thrown).isOffline) throw thrown;
    return undefined;
  }
}
