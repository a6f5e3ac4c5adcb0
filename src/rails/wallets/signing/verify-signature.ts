/**
 * Identification of the signer by the form of a signature: 65 bytes as 0x hex are an EVM key's over the typed data,
 * 64 bytes as base64url an agent's Ed25519 over the hash, and anything else is parsed as a passkey's assertion over
 * the hash.
 */
import { createPublicKey, verify } from 'node:crypto'
import { isHex, parseSignature, recoverAddress, serializeSignature } from 'viem'
import { Failure } from '../../../core/failures/failure.ts'
import type { Address, Authorization, Hex, Wallet } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { lowerCase, type Signer } from '../store.ts'
import type { Intent } from './intent-store.ts'
import { findEoaSigners } from './signer-store.ts'

const EVM_SIGNATURE = /^0x[0-9a-fA-F]{130}$/
const ED25519_SIGNATURE = /^[A-Za-z0-9_-]{86}$/

/** A passkey that signed. @property point its public key, if the chain can verify it. */
interface PasskeySigner {
  readonly id: string
  readonly point: { readonly x: Hex; readonly y: Hex } | null
  readonly counter: number
}

/** Passkeys of accounts, stored by the identity domain. */
export interface Passkeys {
  has(accountId: string): Promise<boolean>
  /** @throws Failure `signature_rejected`. */
  read(accountId: string, assertion: { text: string; challenge: string }): Promise<PasskeySigner>
}

/** Key that makes the call. */
export interface CallingKey {
  readonly id: string
  readonly kind: 'agent' | 'developer' | 'grant'
  readonly publicKey: string | null
}

/**
 * Authorization of an operation.
 * @property by form in which the chain verifies it.
 * @property signerId key that signed; null if none did.
 * @property counter counter of the signing passkey, stored when it is used.
 */
export interface Authorized {
  readonly signer: Signer
  readonly by: Authorization['kind']
  readonly signerId: string | null
  readonly counter: number | null
}

export function isAgentSignature(signature: string): boolean {
  return ED25519_SIGNATURE.test(signature)
}

/**
 * Checks the signature of an intent. The wallet's on-chain owner authorizes directly; for any other signer of the
 * account the gateway does, as the owner or within that signer's allowance.
 * @throws Failure `signature_rejected`.
 */
export async function verifySignature(
  { database, passkeys }: { database: Connection; passkeys: Passkeys },
  {
    wallet,
    intent,
    signature,
    key,
  }: { wallet: Wallet; intent: Intent; signature: string; key: CallingKey | null },
): Promise<Authorized> {
  const { owner, accountId } = wallet
  const indirect = owner.kind === 'gateway' ? 'gateway' : 'allowance'
  if (isAgentSignature(signature)) {
    requireAgent(key, { hash: intent.hash, signature })
    return { signer: 'agent', by: indirect, signerId: key?.id ?? null, counter: null }
  }
  if (EVM_SIGNATURE.test(signature)) {
    const address = await recoverSigner(intent.operationHash, signature)
    const known = await findEoaSigners(database, { accountId })
    const signer = known.find((one) => one.address === address)
    if (signer === undefined) throw rejected('The signature is not that of an EVM key of this account.', key)
    const isOwner = owner.kind === 'eoa' && lowerCase(owner.address) === address
    return { signer: 'eoa', by: isOwner ? 'eoa' : indirect, signerId: signer.id, counter: null }
  }
  const challenge = Buffer.from(intent.hash.slice(2), 'hex').toString('base64url')
  const { id, point, counter } = await passkeys.read(accountId, { text: signature, challenge })
  const isOwner = owner.kind === 'passkey' && owner.x === point?.x && owner.y === point.y
  return { signer: 'passkey', by: isOwner ? 'passkey' : indirect, signerId: id, counter }
}

/** Converts an EVM signature to Safe's form, whose last byte is 27 or 28. @throws when it is not hex. */
export function safeSignature(signature: string): Hex {
  if (!isHex(signature)) throw new Error('an EVM signature is hex')
  return serializeSignature(parseSignature(signature))
}

/** Recovers the address whose key signed a hash; undefined for an invalid signature. */
async function recoverSigner(hash: Hex, signature: string): Promise<Address | undefined> {
  try {
    return lowerCase(await recoverAddress({ hash, signature: safeSignature(signature) }))
  } catch {
    return undefined
  }
}

function requireAgent(key: CallingKey | null, { hash, signature }: { hash: Hex; signature: string }): void {
  if (key?.kind !== 'agent' || key.publicKey === null)
    throw rejected(
      'An Ed25519 signature is accepted only from the agent whose key made it, and the caller is not an agent.',
      key,
    )
  const publicKey = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: key.publicKey } })
  const isTrue = verify(
    null,
    Buffer.from(hash.slice(2), 'hex'),
    publicKey,
    Buffer.from(signature, 'base64url'),
  )
  if (!isTrue) throw rejected('The signature is not this agent’s over the intent’s hash.', key)
}

/** Builds the rejection, with a hint for the kind of caller. */
export function rejected(detail: string, key: CallingKey | null): Failure {
  const hint =
    key === null
      ? 'Ask for an intent with POST /api/wallets/transfer/intent (for a payout: POST /api/banking/payouts/intent) and sign it with a passkey ("challenge") or with a registered EVM key ("typedData").'
      : 'Leave out "signature" and "intentId": the credential of the request authorizes the transfer, within the allowance that the owner has set on chain.'
  return new Failure('signature_rejected', `${detail} Nothing was reserved or sent.`, { hint })
}
