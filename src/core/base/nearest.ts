/** Names the known word that a misspelt one most likely means. */

/**
 * @param most letters that may differ: a third of them, and at least one, unless told otherwise.
 * @returns null when no known word is near.
 */
export function nearestTo(
  word: string,
  known: Iterable<string>,
  most = Math.max(1, Math.floor(word.length / 3)),
): string | null {
  let best: { readonly other: string; readonly edits: number } | null = null
  for (const other of known) {
    if (Math.abs(other.length - word.length) > most) continue
    const edits = editsBetween(word.toLowerCase(), other.toLowerCase())
    if (edits <= most && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { other, edits }
  }
  return best?.other ?? null
}

/** Characters to insert, delete or replace. @see https://en.wikipedia.org/wiki/Levenshtein_distance */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (const [at, character] of [...one].entries()) {
    const next = [at + 1]
    for (const [index, wanted] of [...other].entries())
      next.push(
        Math.min(
          (next[index] ?? 0) + 1,
          (row[index + 1] ?? 0) + 1,
          (row[index] ?? 0) + (character === wanted ? 0 : 1),
        ),
      )
    row = next
  }
  return row.at(-1) ?? 0
}
