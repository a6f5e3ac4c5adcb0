/** Response view of a passkey. */
import { z } from 'zod'
import type { Passkey } from './passkey-store.ts'

export const passkeyView = z.strictObject({
  id: z.string().describe('`pk_…`'),
  createdAt: z.string().describe('Time of registration, ISO 8601 UTC.'),
  lastUsedAt: z.string().nullable().describe('Time of the last use, ISO 8601 UTC; null if never used.'),
  deviceType: z
    .enum(['singleDevice', 'multiDevice'])
    .describe('`singleDevice` for a device-bound passkey, `multiDevice` for a synced one.'),
  backedUp: z.boolean().describe('True if the passkey provider keeps a backup.'),
})
passkeyView.register(z.globalRegistry, { id: 'Passkey' })

export function viewPasskey(passkey: Passkey): z.input<typeof passkeyView> {
  const { id, createdAt, lastUsedAt, deviceType, backedUp } = passkey
  return {
    id,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    deviceType,
    backedUp,
  }
}
