/** Writes one argument of a printed command, so that a POSIX shell reads it as one. */
export function quoteForShell(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
