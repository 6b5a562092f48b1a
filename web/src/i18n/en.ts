/**
 * The English messages, which are the type of all others: a language that lacks one, or has one too many arguments, does not
 * compile. Plain texts are texts; what depends on something is a function of it.
 */
import { common, missing, problem, problems, refused, state, status } from './en/common';
import { design } from './en/design';
import { nav, palette, shell, signIn } from './en/shell';

export const en = { common, design, missing, nav, palette, problem, problems, refused, shell, signIn, state, status };

export type Messages = typeof en;
