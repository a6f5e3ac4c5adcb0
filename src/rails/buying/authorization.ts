/**
 * The authorization that pays: EIP-3009, signed by the purse's key over the domain of a token contract that we know, never over
 * what the seller calls it. @see https://eips.ethereum.org/EIPS/eip-3009
 */
import { LRUCache } from 'lru-cache'
import { keccak256, parseAbi, parseSignature, stringToHex, toHex } from 'viem'
import { type LocalAccount, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import type { Json } from '../../core/base/json.ts'
import { derivedSeed } from '../../core/base/seal.ts'
import { signedPaymentTypes as types } from '../../core/base/signed-payment-types.ts'
import { timers } from '../../core/base/timers.ts'
import { type Address, type Chain, type Hex, tokenAddress } from '../../providers/chain/port.ts'
import { deriveChallengeNonce, mppCredential } from './mpp.ts'
import type { PayableAsset, Protocol } from './terms.ts'

/** Never stale: a purse has one key for ever. Deriving the address takes as long as signing. */
const accounts = new WeakMap<Uint8Array, LRUCache<string, PrivateKeyAccount>>()

/** The key of a purse: derived, so that it is stored nowhere and every process has it. */
export function purseKey(dataKey: Uint8Array, purseId: string): PrivateKeyAccount {
  const known = accounts.get(dataKey) ?? new LRUCache<string, PrivateKeyAccount>({ max: 1_000 })
  accounts.set(dataKey, known)
  const account = known.get(purseId) ?? privateKeyToAccount(toHex(derivedSeed(dataKey, `purse ${purseId}`)))
  known.set(purseId, account)
  return account
}

/** The only nonce of a purchase: our choice, except where the protocol prescribes it. */
export function derivePurchaseNonce({
  purchaseId,
  protocol,
  offer,
}: {
  purchaseId: string
  protocol: Protocol
  offer: Json
}): Hex {
  if (protocol === 'mpp') return deriveChallengeNonce(offer)
  return keccak256(stringToHex(`bursar purchase ${purchaseId}`))
}

export interface PaymentMessage {
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly validAfter: bigint
  /** Whole seconds; the token wants an earlier block. */
  readonly validBefore: bigint
  readonly nonce: Hex
}

/** Both calls take the signature in parts: older tokens know no other form. */
const abi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
])

export function splitSignature(signature: Hex): readonly [v: number, r: Hex, s: Hex] {
  const { r, s, yParity } = parseSignature(signature)
  return [yParity + 27, r, s]
}

/** EIP-712 domain of a token contract. */
interface TokenDomain {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: Address
}

/**
 * Only an upgrade of a token changes its domain; for so long, a payment signed over the former one is refused by the token, and
 * ends unpaid.
 */
const DOMAIN_TTL_MS = 60_000
const domains = new WeakMap<Chain['signer'], LRUCache<PayableAsset, TokenDomain>>()

/** A chain whose tokens are read. */
export type TokenReader = Pick<Chain, 'id' | 'name' | 'tokens' | 'signer'>

/** Reads the token's own EIP-712 domain. May be stale for a minute. @throws when the chain cannot be read. */
export async function readTokenDomain(chain: TokenReader, asset: PayableAsset): Promise<TokenDomain> {
  const { id, signer } = chain
  const address = tokenAddress(chain, asset)
  const known =
    domains.get(signer) ??
    new LRUCache<PayableAsset, TokenDomain>({
      max: 10,
      ttl: DOMAIN_TTL_MS,
      ttlResolution: 0,
      perf: { now: () => timers.monotonic() },
    })
  domains.set(signer, known)
  const fresh = known.get(asset)
  if (fresh !== undefined) return fresh
  const read = async (functionName: 'name' | 'version') =>
    z.string().parse(await signer.readContract({ address, abi, functionName, args: [] }))
  const [name, version] = await Promise.all([read('name'), read('version')])
  const domain = { name, version, chainId: id, verifyingContract: address }
  known.set(asset, domain)
  return domain
}

/** @throws when the chain cannot be read; nothing is signed then. */
export async function signPayment(
  chain: TokenReader,
  account: LocalAccount,
  { asset, message }: { asset: PayableAsset; message: PaymentMessage },
): Promise<Hex> {
  const domain = await readTokenDomain(chain, asset)
  return account.signTypedData({ domain, types, primaryType: 'TransferWithAuthorization', message })
}

/**
 * Cancels an authorization on the chain, so that it can never be used. The sponsor pays the gas.
 * @throws when the token refuses, because it was used or cancelled before, or when the chain does not answer.
 */
export async function cancelAuthorization(
  chain: TokenReader,
  account: LocalAccount,
  { asset, nonce }: { asset: PayableAsset; nonce: Hex },
): Promise<void> {
  const domain = await readTokenDomain(chain, asset)
  const signature = await account.signTypedData({
    domain,
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  })
  const hash = await chain.signer.writeContract({
    address: tokenAddress(chain, asset),
    abi,
    functionName: 'cancelAuthorization',
    args: [account.address, nonce, ...splitSignature(signature)],
  })
  await chain.signer.waitForTransactionReceipt({ hash, timeout: CANCEL_WAIT_MS })
}

const CANCEL_WAIT_MS = 10_000

/** Executes a signed authorization by a transaction of the sponsor. @throws as {@link cancelAuthorization}. */
export async function executePayment(
  chain: Pick<Chain, 'name' | 'tokens' | 'signer'>,
  { asset, message, signature }: { asset: PayableAsset; message: PaymentMessage; signature: Hex },
): Promise<void> {
  const { from, to, value, validAfter, validBefore, nonce } = message
  const hash = await chain.signer.writeContract({
    address: tokenAddress(chain, asset),
    abi,
    functionName: 'transferWithAuthorization',
    args: [from, to, value, validAfter, validBefore, nonce, ...splitSignature(signature)],
  })
  await chain.signer.waitForTransactionReceipt({ hash, timeout: CANCEL_WAIT_MS })
}

const offerOfX402 = z.looseObject({
  accepted: z.looseObject({ network: z.string() }),
  resource: z.unknown().optional(),
  extensions: z.unknown().optional(),
})

/** The header by which a protocol carries a signed authorization. */
export function credentialHeader(
  { protocol, offer, chainId }: { protocol: Protocol; offer: Json; chainId: number },
  message: PaymentMessage,
  signature: Hex,
): { readonly name: string; readonly value: string } {
  const authorization = {
    from: message.from,
    to: message.to,
    value: message.value.toString(),
    validAfter: message.validAfter.toString(),
    validBefore: message.validBefore.toString(),
    nonce: message.nonce,
  }
  if (protocol === 'mpp') return mppCredential(offer, { chainId, signature, authorization })
  const { accepted, resource, extensions } = offerOfX402.parse(offer)
  const payload = { signature, authorization }
  const inBase64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  if (protocol === 'x402-v2')
    return {
      name: 'PAYMENT-SIGNATURE',
      value: inBase64({
        x402Version: 2,
        resource: resource ?? undefined,
        accepted,
        payload,
        extensions: extensions ?? undefined,
      }),
    }
  return {
    name: 'X-PAYMENT',
    value: inBase64({ x402Version: 1, scheme: 'exact', network: accepted.network, payload }),
  }
}
