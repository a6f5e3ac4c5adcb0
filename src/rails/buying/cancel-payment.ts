/** Makes a signed payment void on the chain, so that nobody can take it any more. */
import type { Clock } from '../../core/base/clock.ts'
import { cancelAuthorization, purseKey, type TokenReader } from './authorization.ts'
import { type Purchase, parseKind, toHex } from './store.ts'
import { takeBackPermit } from './upto.ts'

/** @throws when the chain does not confirm it, or the payment was taken before. */
export async function cancelPayment(
  parts: {
    readonly chain: TokenReader
    readonly clock: Clock
    readonly settings: { readonly dataKey: Uint8Array }
  },
  purchase: Purchase,
): Promise<void> {
  const account = purseKey(parts.settings.dataKey, purchase.purse_id)
  const { asset } = parseKind(purchase)
  if (purchase.scheme === 'upto') return takeBackPermit(parts, account, { asset })
  await cancelAuthorization(parts.chain, account, { asset, nonce: toHex(purchase.nonce) })
}
