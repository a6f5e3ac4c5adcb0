/** Parses the ancestors of a key as the database function `key_ancestors` returns them. */
import { z } from 'zod'
import type { Delegation } from './principal.ts'

const ancestor = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(['active', 'paused', 'revoked']),
  scopes: z.array(z.string()),
  policy: z.unknown(),
  policyVersion: z.number(),
})
const path = z.tuple([ancestor], ancestor).nullable()

/** @returns null for a root. */
export function parseAncestors(row: unknown): Delegation['path'] | null {
  return path.parse(row)
}
