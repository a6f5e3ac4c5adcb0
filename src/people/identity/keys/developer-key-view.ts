/** Response view of a developer key. */
import { z } from 'zod'
import type { AccessKey } from '../../../core/base/principal.ts'

/** The secret appears only in the response that created the key. */
export const developerKeyView = z.strictObject({
  id: z.string().describe('`key_…`'),
  name: z.string().describe('Name given by the owner.'),
  status: z.enum(['active', 'paused', 'revoked']).describe('Status of the key.'),
  scopes: z.array(z.string()).describe('Scopes of the key.'),
  policy: z.looseObject({}).nullable().describe('Spend policy, amounts in USD.'),
  createdAt: z.string().describe('Time of creation, ISO 8601 UTC.'),
  expiresAt: z.string().nullable().describe('Expiry, ISO 8601 UTC; null for no expiry.'),
})
developerKeyView.register(z.globalRegistry, { id: 'DeveloperKey' })

const document = z.looseObject({}).nullable()

export function viewDeveloperKey(key: AccessKey): z.input<typeof developerKeyView> {
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
