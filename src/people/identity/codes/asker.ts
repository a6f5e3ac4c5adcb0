/** Client that asks for a code. Each has codes and budgets of its own for a destination. */
import type { KnownBrowser } from '../../../core/base/principal.ts'
import type { Connection } from '../../../storage/database.ts'
import type { Destination } from './destinations.ts'
import { findOwnerId } from './login-destinations.ts'

/** @property id a browser that the destination's owner signed in with before, or a stranger's network address. */
export type Asker =
  | { readonly kind: 'known'; readonly id: string; readonly accountId: string }
  | { readonly kind: 'stranger'; readonly id: string }

export async function findAsker(
  {
    database,
    knownBrowser = null,
    clientAddress = 'unknown',
  }: {
    readonly database: Connection
    readonly knownBrowser?: KnownBrowser | null
    readonly clientAddress?: string
  },
  { hash }: Pick<Destination, 'hash'>,
): Promise<Asker> {
  const isKnown = knownBrowser !== null && (await findOwnerId(database, hash)) === knownBrowser.accountId
  return isKnown ? { kind: 'known', ...knownBrowser } : { kind: 'stranger', id: clientAddress }
}
