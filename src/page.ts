/** Lists in pages: a cursor is the id that the page before ended with, in a form that says nothing. */
import { z } from 'zod'

/** The members of a list's input. `cursor` is decoded to the id after which the page begins. */
export const pageMembers = {
  limit: z.coerce.number().int().min(1).max(100).default(50).describe('How many at most, 1 to 100.'),
  cursor: z
    .string()
    .max(128)
    .optional()
    .transform((cursor, context) => {
      if (cursor === undefined) return undefined
      const id = Buffer.from(cursor, 'base64url').toString('latin1')
      if (/^[a-z]+_[0-9a-z]{26}$/.test(id) && cursorOf(id) === cursor) return id
      context.addIssue({ code: 'custom', message: 'must be the nextCursor of a page before' })
      return z.NEVER
    })
    .describe('`nextCursor` of the page before.'),
}

/** The member of a list's answer that leads to the next page. */
export const nextCursor = z.string().nullable().describe('Send it as `cursor` for more; null: this was all.')

/** One page of a list. @param read the rows after an id, by id, and at most as many. */
export async function pageOf<Row extends { readonly id: string }>(
  { limit, cursor }: { limit: number; cursor: string | undefined },
  read: (page: { after: string | undefined; most: number }) => Promise<readonly Row[]>,
): Promise<{ rows: readonly Row[]; nextCursor: string | null }> {
  const found = await read({ after: cursor, most: limit + 1 })
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return { rows, nextCursor: found.length > limit && last !== undefined ? cursorOf(last.id) : null }
}

function cursorOf(id: string): string {
  return Buffer.from(id).toString('base64url')
}
