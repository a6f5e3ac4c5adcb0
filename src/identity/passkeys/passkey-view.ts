/** A passkey as its owner sees it. */
import { z } from 'zod'
import type { Passkey } from './passkey-store.ts'

/** The view. */
export const passkeyView = z.strictObject({
  id: z.string().describe('`pk_…`'),
  createdAt: z.string().describe('When it was registered, ISO 8601 UTC.'),
  lastUsedAt: z.string().nullable().describe('When it last signed in, ISO 8601 UTC; null: never.'),
  deviceType: z
    .enum(['singleDevice', 'multiDevice'])
    .describe('Whether it stays on one device or is synced to several.'),
  backedUp: z.boolean().describe('Whether its provider keeps a copy.'),
})

/** {@link passkeyView} of a passkey. */
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
