/** The questions of a booking form while they are being built: all kinds side by side, so that changing one's mind loses nothing. */
import type { Parameter } from '../../../api/types';
import { kindOf, type Kind } from '../../../booking/parameters';

export interface Question {
  readonly id: number;
  key: string;
  label: string;
  help: string;
  required: boolean;
  kind: Kind;
  maxLength: number | null;
  min: number | null;
  max: number | null;
  integer: boolean;
  /** The earliest and the latest day, as date fields write them. */
  earliest: string;
  latest: string;
  /** One each line. */
  options: string;
}

let nextId = 1;

export function newQuestion(): Question {
  return { id: nextId++, key: '', label: '', help: '', required: false, kind: 'text', maxLength: null, min: null, max: null, integer: false, earliest: '', latest: '', options: '' };
}

export function fromParameter(parameter: Parameter): Question {
  const { kind } = parameter;
  return {
    ...newQuestion(),
    key: parameter.key,
    label: parameter.label,
    help: parameter.help ?? '',
    required: parameter.required ?? false,
    kind: kindOf(parameter),
    ...('text' in kind ? { maxLength: kind.text.max_length ?? null } : {}),
    ...('number' in kind ? { min: kind.number.min ?? null, max: kind.number.max ?? null, integer: kind.number.integer ?? false } : {}),
    ...('date' in kind ? { earliest: kind.date.min ?? '', latest: kind.date.max ?? '' } : {}),
    ...('choice' in kind ? { options: kind.choice.options.join('\n') } : {}),
  };
}

export function toParameter(question: Question): Parameter {
  return {
    key: question.key.trim(),
    label: question.label.trim(),
    required: question.required,
    kind: kindToSend(question),
    ...(question.help.trim() ? { help: question.help.trim() } : {}),
  };
}

function kindToSend(question: Question): Parameter['kind'] {
  switch (question.kind) {
    case 'text':
      return { text: question.maxLength ? { max_length: question.maxLength } : {} };
    case 'number':
      return {
        number: {
          integer: question.integer,
          ...(question.min === null ? {} : { min: question.min }),
          ...(question.max === null ? {} : { max: question.max }),
        },
      };
    case 'choice':
      return { choice: { options: question.options.split('\n').map((line) => line.trim()).filter(Boolean) } };
    case 'boolean':
      return { boolean: {} };
    case 'date':
      return { date: { ...(question.earliest ? { min: question.earliest } : {}), ...(question.latest ? { max: question.latest } : {}) } };
    case 'secret':
      return { secret: {} };
  }
}
