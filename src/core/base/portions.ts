/** Rows that one statement deletes at most: it ends far within the statement timeout, and holds few locks for a moment. */
const PORTION = 1_000

/**
 * Deletes rows in portions, each committed by itself, so that any number of rows is deleted in the end.
 * @param deletePortion deletes at most `limit` rows. @returns their number.
 */
export async function deleteInPortions(deletePortion: (limit: number) => Promise<bigint>): Promise<bigint> {
  let deleted = 0n
  for (;;) {
    const portion = await deletePortion(PORTION)
    deleted += portion
    if (portion < PORTION) return deleted
  }
}
