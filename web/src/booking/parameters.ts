/** The answers to the booking forms of types: what is asked, what is still missing, and what to send. */
import type { Parameter, Parameters, ResourceType } from '../api/types';

export type Answer = string | number | boolean | null;
/** By type and by question. */
export type Answers = Record<string, Record<string, Answer>>;

/** How the server shows a secret that it has. */
export const MASK = '********';

export type Kind = 'text' | 'number' | 'choice' | 'boolean' | 'date' | 'secret';

export function kindOf(parameter: Parameter): Kind {
  return Object.keys(parameter.kind)[0] as Kind;
}

export function optionsOf(parameter: Parameter): readonly string[] {
  return 'choice' in parameter.kind ? parameter.kind.choice.options : [];
}

function isBlank(answer: Answer | undefined): boolean {
  return answer === undefined || answer === null || answer === '';
}

/** The questions that must be answered and are not, as `type.key`. */
export function missing(types: readonly ResourceType[], answers: Answers): Set<string> {
  const names = types.flatMap((type) =>
    type.parameters
      .filter((parameter) => parameter.required && isBlank(answers[type.name]?.[parameter.key]))
      .map((parameter) => `${type.name}.${parameter.key}`),
  );
  return new Set(names);
}

/** What to send: only what was answered, and no secret that was only shown as a mask. */
export function toSend(types: readonly ResourceType[], answers: Answers): Parameters {
  const sent: Parameters = {};
  for (const type of types) {
    const given = type.parameters
      .map((parameter) => [parameter.key, answers[type.name]?.[parameter.key]] as const)
      .filter((entry): entry is readonly [string, Answer] => !isBlank(entry[1]) && entry[1] !== MASK);
    if (given.length > 0) sent[type.name] = Object.fromEntries(given);
  }
  return sent;
}

/**
 * The answers, with something acceptable wherever one is missing. A server asked "would this be accepted?" looks at the form
 * first; with this it looks at the time while the form is still being filled in.
 */
export function plausible(types: readonly ResourceType[], answers: Answers, today: string): Parameters {
  const filled: Answers = {};
  for (const type of types) {
    filled[type.name] = { ...answers[type.name] };
    for (const parameter of type.parameters) {
      if (parameter.required && isBlank(filled[type.name]?.[parameter.key])) {
        filled[type.name]![parameter.key] = example(parameter, today);
      }
    }
  }
  return toSend(types, filled);
}

function example(parameter: Parameter, today: string): Answer {
  const { kind } = parameter;
  if ('choice' in kind) return kind.choice.options[0] ?? '';
  if ('number' in kind) return kind.number.min ?? kind.number.max ?? 1;
  if ('boolean' in kind) return false;
  if ('date' in kind) return kind.date.min ?? kind.date.max ?? today;
  return 'x';
}
