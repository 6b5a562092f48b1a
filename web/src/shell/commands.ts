/** Finding among many names with few letters. */

/** How well a name fits what was typed: the beginning of a word is best, letters in order will do; null if neither. */
export function fit(typed: string, name: string): number | null {
  const wanted = typed.trim().toLowerCase();
  const text = name.toLowerCase();
  if (wanted === '') return 0;
  const at = text.indexOf(wanted);
  if (at === 0) return 0;
  if (at > 0) return /[^a-z0-9]/.test(text[at - 1] ?? '') ? 1 : 2;
  let from = 0;
  for (const letter of wanted) {
    from = text.indexOf(letter, from) + 1;
    if (from === 0) return null;
  }
  return 3;
}

/** The best fitting ones, best first; equal ones keep their order. */
export function best<T>(typed: string, items: readonly T[], name: (item: T) => string, most: number): T[] {
  return items
    .map((item) => ({ item, rank: fit(typed, name(item)) }))
    .filter((found): found is { item: T; rank: number } => found.rank !== null)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ item }) => item);
}
