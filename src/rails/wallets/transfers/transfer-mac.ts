/**
 * Authenticity of transfers. A row alone moves nothing: before the gateway resends a transfer, the row must match
 * what its process wrote. The code's key is never in the database, and the id is the nonce by which the chain
 * executes a transfer at most once.
 */
import { timingSafeEqual } from 'node:crypto'
import { canonicalJson } from '../../../core/base/json.ts'
import { keyedHash } from '../../../core/base/seal.ts'
import type { Transfer } from '../store.ts'
import { routeJson } from './swap-route.ts'

/** Members covered by the code: everything that determines where money goes and who signed for it. */
type Covered = Pick<
  Transfer,
  | 'id'
  | 'decisionId'
  | 'fundingId'
  | 'token'
  | 'units'
  | 'destination'
  | 'chain'
  | 'authorization'
  | 'validUntil'
  | 'route'
> & { readonly wallet: Pick<Transfer['wallet'], 'accountId' | 'isEscrow'> }

/** Authentication code of a transfer: HMAC-SHA-256, hex. */
export function transferMac(
  dataKey: Uint8Array,
  {
    id,
    wallet,
    decisionId,
    fundingId,
    token,
    units,
    destination,
    chain,
    authorization,
    validUntil,
    route,
  }: Covered,
): string {
  const content = {
    id,
    accountId: wallet.accountId,
    ...(wallet.isEscrow && { payer: 'escrow' }),
    decisionId,
    ...(fundingId === undefined ? {} : { fundingId }),
    token,
    units: units.toString(),
    destination,
    chain,
    authorization,
    validUntil: validUntil.toISOString(),
    ...(route === undefined ? {} : { route: routeJson(route) }),
  }
  return keyedHash(dataKey, 'transfer', canonicalJson(content))
}

/** @throws Error when the transfer differs from what a process of this gateway wrote. */
export function requireAuthentic(dataKey: Uint8Array, transfer: Transfer): void {
  const expected = Buffer.from(transferMac(dataKey, transfer))
  const found = Buffer.from(transfer.mac ?? '')
  if (found.length !== expected.length || !timingSafeEqual(found, expected))
    throw new Error(`the transfer ${transfer.id} fails authentication and is not sent`)
}
