/**
 * Whose signature it is. The three kinds have three forms: 65 bytes as 0x hex are an EVM key's over the typed data, 64 bytes
 * as base64url an agent's Ed25519 over the hash, and anything else is read as a passkey's assertion over the hash.
 */
import { createPublicKey, verify } from 'node:crypto'
import { isHex, parseSignature, recoverAddress, serializeSignature } from 'viem'
import { Failure } from '../../failures/failure.ts'
import type { Address, Authorization, Hex, Wallet } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'
import { lowerCase, type Signer } from '../store.ts'
import type { Intent } from './intent-store.ts'
import { findEoaSigners } from './signer-store.ts'

const EVM_SIGNATURE = /^0x[0-9a-fA-F]{130}$/
const ED25519_SIGNATURE = /^[A-Za-z0-9_-]{86}$/

/** A passkey that signed. @property point its public key where the chain can check it. */
interface PasskeySigner {
  readonly id: string
  readonly point: { readonly x: Hex; readonly y: Hex } | null
  readonly counter: number
}

/** The passkeys of accounts, which are kept elsewhere. */
export interface Passkeys {
  has(accountId: string): Promise<boolean>
  /** @throws Failure `signature_rejected`. */
  read(accountId: string, assertion: { text: string; challenge: string }): Promise<PasskeySigner>
}

/** A key that calls. */
export interface CallingKey {
  readonly id: string
  readonly kind: 'agent' | 'developer' | 'grant'
  readonly publicKey: string | null
}

/**
 * Who authorizes an operation. @property by how the chain verifies it. @property signerId of the key that signed; null: none
 * did. @property counter of the passkey that signed, to be counted when it is used.
 */
export interface Authorized {
  readonly signer: Signer
  readonly by: Authorization['kind']
  readonly signerId: string | null
  readonly counter: number | null
}

/** Whether a signature has the form of an agent's. */
export function isAgentSignature(signature: string): boolean {
  return ED25519_SIGNATURE.test(signature)
}

/**
 * Checks the signature of an intent. The wallet's owner on chain authorizes directly; for any other signer of the account, the
 * gateway does: as the owner, or within the allowance of that signer.
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
    const address = await signerOf(intent.operationHash, signature)
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

/** An EVM signature as Safe reads it: its last byte is 27 or 28. @throws where it is none. */
export function safeSignature(signature: string): Hex {
  if (!isHex(signature)) throw new Error('an EVM signature is hex')
  return serializeSignature(parseSignature(signature))
}

/** The address whose key signed a hash; undefined where none did. */
async function signerOf(hash: Hex, signature: string): Promise<Address | undefined> {
  try {
    return lowerCase(await recoverAddress({ hash, signature: safeSignature(signature) }))
  } catch {
    return undefined
  }
}

function requireAgent(key: CallingKey | null, { hash, signature }: { hash: Hex; signature: string }): void {
  if (key?.kind !== 'agent' || key.publicKey === null)
    throw rejected(
      'An Ed25519 signature counts from the agent whose key made it, and the caller is none.',
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

/** A refusal that tells the caller what it would take to be let through. */
export function rejected(detail: string, key: CallingKey | null): Failure {
  const hint =
    key === null
      ? 'Ask for an intent with POST /api/wallets/transfer/intent and sign it with a passkey ("challenge") or with a registered EVM key ("typedData").'
      : key.kind === 'agent'
        ? 'Ask for an intent with POST /api/wallets/transfer/intent, sign the 32 bytes of "hash" with your Ed25519 key, and send that as base64url.'
        : 'This key has no key pair of its own to sign with: the owner of the wallet must sign the intent of POST /api/wallets/transfer/intent, with a passkey or a registered EVM key.'
  return new Failure('signature_rejected', `${detail} Nothing was reserved or sent.`, { hint })
}
