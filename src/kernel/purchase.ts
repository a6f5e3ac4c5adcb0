/** Identifies a purchase by its idempotency key, whichever money pays. */
import { isSpendDecided } from '../books/spending/decisions.ts'
import type { IdempotentCall } from '../books/spending/idempotency.ts'
import type { Connection } from '../storage/database.ts'
import type { Services } from './context.ts'
import { hashSpendCall, idempotencyOwner } from './fingerprint.ts'
import type { Call, Tool } from './tool.ts'

/**
 * @property named idempotency key and request hash. @property isOwners true if the owner's money pays, or awaits
 * approval.
 */
export interface NamedPurchase {
  readonly named: IdempotentCall
  readonly isOwners: () => Promise<boolean>
}

export function namePurchase(
  { database, chains, now }: { database: Connection; chains: Services['chains']; now: Date },
  { principal, key }: { principal: Parameters<typeof idempotencyOwner>[0]; key: string },
  { tool, call }: { tool: Pick<Tool, 'name'>; call: Pick<Call, 'input'> },
): NamedPurchase {
  const named = {
    principal: idempotencyOwner(principal),
    key,
    fingerprint: hashSpendCall({ chains }, tool.name, call.input),
  }
  return { named, isOwners: () => isSpendDecided(database, named, now) }
}
