/** A purchase that is signed, for tests that write it without a seller. */
import { newId } from '../../../src/core/base/ids.ts'
import type { Address } from '../../../src/providers/chain/port.ts'
import type { NewPurchase } from '../../../src/rails/buying/store.ts'
import { noon, place } from '../../books/spending/scene.ts'

const origin = 'https://a.example.com'

/** @param address of the purse, whose key buys. */
export function signedPurchase({
  accountId,
  keyId,
  decisionId,
  address,
  units,
}: {
  accountId: string
  keyId: string
  decisionId: string
  address: Address
  units: bigint
}): NewPurchase {
  return {
    purchaseId: newId('buy', noon),
    url: `${origin}/`,
    origin,
    seller: origin,
    resource: `${origin}/`,
    method: 'GET',
    requestHash: '',
    purpose: null,
    protocol: 'x402-v2',
    scheme: 'exact',
    network: 'eip155:84532',
    asset: 'USDC',
    token: '0xa',
    payTo: '0xb',
    units: units.toString(),
    offer: {},
    purseId: keyId,
    accountId,
    keyId,
    decisionId,
    chain: place,
    payer: address,
    nonce: `0x${Buffer.from(decisionId).toString('hex')}`,
    busyUntil: noon,
    at: noon,
    signed: {
      validBefore: noon,
      sinceBlock: 1n,
      credential: Buffer.from('sealed'),
      credentialHash: 'hash',
    },
  }
}
