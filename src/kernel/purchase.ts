/** What a key buys under an idempotency key, whoever's money pays. */
import { isSpendDecided } from '../spending/decisions.ts'
import type { IdempotentCall } from '../spending/idempotency.ts'
import type { Connection } from '../storage/database.ts'
import { fingerprintOf, idempotencyOwner } from './fingerprint.ts'
import type { Call, Tool } from './tool.ts'

/** One purchase. @property named its name and a hash of what it is. @property isOwners whether the owner's money pays for it, or waits for the owner to say so. */
export interface NamedPurchase {
  readonly named: IdempotentCall
  readonly isOwners: () => Promise<boolean>
}

/** The purchase behind a key's call of what is sold. */
export function purchaseOf(
  { database, now }: { database: Connection; now: Date },
  { principal, key }: { principal: Parameters<typeof idempotencyOwner>[0]; key: string },
  { tool, call }: { tool: Pick<Tool, 'name'>; call: Pick<Call, 'input'> },
): NamedPurchase {
  const named = {
    principal: idempotencyOwner(principal),
    key,
    fingerprint: fingerprintOf(tool.name, call.input),
  }
  return { named, isOwners: () => isSpendDecided(database, named, now) }
}
