/** A developer key as its owner sees it. */
import { z } from 'zod'
import type { AccessKey } from '../../base/principal.ts'

/** The view; its secret is in none but the answer that made it. */
export const developerKeyView = z.strictObject({
  id: z.string().describe('`key_…`'),
  name: z.string().describe('What the owner calls it.'),
  status: z.enum(['active', 'paused', 'revoked']).describe('Whether it works.'),
  scopes: z.array(z.string()).describe('What it may do.'),
  policy: z.looseObject({}).nullable().describe('The spend policy, amounts in USD.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  expiresAt: z.string().nullable().describe('When it ends, ISO 8601 UTC.'),
})

const document = z.looseObject({}).nullable()

/** {@link developerKeyView} of a key. */
export function developerKeyOf(key: AccessKey): z.input<typeof developerKeyView> {
  return {
    id: key.id,
    name: key.name,
    status: key.status,
    scopes: [...key.scopes],
    policy: document.parse(key.policy),
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
  }
}
