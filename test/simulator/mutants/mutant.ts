/** A replacement in the source of a module. @property file from the project's root. @property text must be there. */
export interface Edit {
  readonly file: string
  readonly text: string
  readonly by: string
}

/**
 * A known defect that is put back. @property attack what it lets somebody do. @property functions edits of SQL functions.
 * @property kinds of operations that show it; undefined for all.
 */
export interface Mutant {
  readonly name: string
  readonly attack: string
  readonly edits?: readonly Edit[]
  readonly functions?: readonly Edit[]
  readonly kinds?: readonly string[]
}
