/** Lists in pages: newest first, `limit` rows a page, and an opaque cursor that stands behind the last row. */
import { z } from 'zod'

const ID = /^[a-z]+_[0-9a-z]{26}$/

/** The members of a request for a list. */
export const pageMembers = {
  limit: z
    .union([
      z.int(),
      z
        .string()
        .regex(/^\d{1,3}$/, 'must be a whole number')
        .transform(Number),
    ])
    .refine((limit) => limit >= 1 && limit <= 100, 'must be from 1 to 100')
    .optional()
    .describe('How many at most: 1 to 100, 50 by default.'),
  cursor: z
    .string()
    .transform((cursor, context) => {
      const id = Buffer.from(cursor, 'base64url').toString()
      if (ID.test(id)) return id
      context.addIssue({ code: 'custom', message: 'is not a cursor of ours' })
      return z.NEVER
    })
    .optional()
    .describe('`nextCursor` of the page before.'),
}

/** The member of an answer that leads to the next page. */
export const nextCursor = z.string().nullable().describe('Where the next page begins; null at the end.')

/** Which page is asked for. @property after the id of the last row before it. */
export interface Page {
  readonly limit: number
  readonly after: string | null
}

/** The page that a request asks for. */
export function pageOf({
  limit = 50,
  cursor,
}: {
  limit?: number | undefined
  cursor?: string | undefined
}): Page {
  return { limit, after: cursor ?? null }
}

/** One page of rows that were read with one more than the limit. */
export function onePage<Row extends { readonly id: string }>(
  rows: readonly Row[],
  { limit }: Page,
): { rows: readonly Row[]; nextCursor: string | null } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const isMore = rows.length > limit && last !== undefined
  return { rows: shown, nextCursor: isMore ? Buffer.from(last.id).toString('base64url') : null }
}
