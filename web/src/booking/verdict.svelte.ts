/**
 * What the server would say, asked while a person is still typing.
 *
 * Nothing is booked by asking. The answer belongs to the question it was asked for: as soon as the draft changes it is shown
 * as old, and a late answer to an older question is dropped.
 */
import { api, call } from '../api/client';
import { asFailure, Failure } from '../api/problem';
import type { BookedOrPreview, Choice, NewAnyReservation, NewReservation, NewSeries, PolicyFindings, ReservationPreview, SeriesPreview } from '../api/types';
import type { BookingDraft } from './draft.svelte';
import { questionOf, type Request } from './request';

export interface Verdict {
  readonly accepted: boolean;
  /** It would wait for somebody's leave. */
  readonly needsApproval: boolean;
  readonly refusal?: Failure;
  readonly series?: SeriesPreview;
  /** What any of a kind would be, as things stand. */
  readonly found?: Choice;
  readonly findings?: PolicyFindings;
}

const PAUSE_MS = 250;

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
    if (!draft.isWhole) {
      this.verdict = undefined;
      this.isAsking = false;
      return;
    }
    const question = questionOf(draft, now);
    this.isAsking = true;
    this.#timer = setTimeout(() => void this.#ask(draft, question, turn), PAUSE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#turn += 1;
  }

  async #ask(draft: BookingDraft, question: Request, turn: number): Promise<void> {
    try {
      const verdict = await judge(draft.site, question);
      if (turn !== this.#turn) return;
      this.verdict = verdict;
      this.failure = undefined;
      // Other types have other forms, and the question is asked again with them.
      const types = [...new Set(verdict.found?.resources.map(({ type }) => type) ?? [])];
      if (types.join() !== draft.foundTypes.join()) draft.foundTypes = types;
    } catch (thrown) {
      if (turn !== this.#turn) return;
      this.failure = asFailure(thrown);
    }
    this.isAsking = false;
  }
}

async function judge(site: string, question: Request): Promise<Verdict> {
  if ('wish' in question) return askAny(site, question);
  const [verdict, findings] = await Promise.all(['rule' in question ? askSeries(site, question) : askOne(site, question), askPolicies(site, question)]);
  return { ...verdict, ...(findings ? { findings } : {}) };
}

async function askOne(site: string, body: NewReservation): Promise<Verdict> {
  const params = { path: { site }, query: { dry_run: true } };
  return read(await call(api.POST('/sites/{site}/reservations', { params, body })));
}

/** A dry run says whether there is room, not where; that is what "when" is asked for. */
async function askAny(site: string, body: NewAnyReservation): Promise<Verdict> {
  const params = { path: { site }, query: { dry_run: true } };
  const [answer, when] = await Promise.all([
    call(api.POST('/sites/{site}/reservations/any', { params, body })),
    call(api.POST('/when', { body: { wish: body.wish, sites: [site], limit: 1 } })),
  ]);
  const [found] = when.choices;
  const findings = found && (await askPolicies(site, { ...body, start: found.start, end: found.end, resources: found.resources.map(({ name }) => ({ resource: name })) }));
  return { ...read(answer), ...(found ? { found } : {}), ...(findings ? { findings } : {}) };
}

function read(answer: BookedOrPreview): Verdict {
  const preview = answer as ReservationPreview;
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

type Tested = Pick<NewReservation, 'start' | 'end' | 'resources' | 'project' | 'on_behalf_of'>;

async function askPolicies(site: string, { start, end, resources, project, on_behalf_of }: Tested): Promise<PolicyFindings | undefined> {
  const body = { start, end, resources, ...(project ? { project } : {}), ...(on_behalf_of ? { on_behalf_of } : {}) };
  try {
    return await call(api.POST('/sites/{site}/policy/test', { params: { path: { site } }, body }));
  } catch (thrown) {
    // The refusal of the booking itself says more than that its policies could not be tested.
    if (asFailure(thrown).isOffline) throw thrown;
    return undefined;
  }
}
