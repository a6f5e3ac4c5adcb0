/** Pagination: newest first, `limit` rows per page, with an opaque cursor after the last row. */
import { z } from 'zod'

const ID = /^[a-z]+_[0-9a-z]{26}$/
const RANGE = 'must be from 1 to 100'

/** Request members of lists. */
export const pageMembers = {
  limit: z
    .union([
      z.int().min(1, RANGE).max(100, RANGE),
      z
        .string()
        .regex(/^\d{1,9}$/, 'must be a whole number')
        .transform(Number),
    ])
    .refine((limit) => limit >= 1 && limit <= 100, RANGE)
    .optional()
    .describe('1 to 100, default 50.'),
  cursor: z
    .string()
    .max(128)
    .transform((cursor, context) => {
      const id = Buffer.from(cursor, 'base64url').toString()
      if (ID.test(id)) return id
      context.addIssue({ code: 'custom', message: 'is not a valid cursor' })
      return z.NEVER
    })
    .optional()
    .describe('From `nextCursor`.'),
}

export const nextCursor = z.string().nullable().describe('Cursor of the next page; null on the last page.')

/** @property after id of the last row of the previous page. */
export interface Page {
  readonly limit: number
  readonly after: string | null
}

export function toPage({
  limit = 50,
  cursor,
}: {
  limit?: number | undefined
  cursor?: string | undefined
}): Page {
  return { limit, after: cursor ?? null }
}

/** Cuts rows that were read with a limit one higher than the page's. */
export function cutPage<Row extends { readonly id: string }>(
  rows: readonly Row[],
  { limit }: Page,
): { rows: readonly Row[]; nextCursor: string | null } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const isMore = rows.length > limit && last !== undefined
  return { rows: shown, nextCursor: isMore ? Buffer.from(last.id).toString('base64url') : null }
}
