/** I messaggi italiani. */
import type { Messages } from './en';
import { common, missing, problem, problems, refused, state, status } from './it/common';
import { design } from './it/design';
import { nav, palette, shell, signIn } from './it/shell';

export const it: Messages = { common, design, missing, nav, palette, problem, problems, refused, shell, signIn, state, status };
