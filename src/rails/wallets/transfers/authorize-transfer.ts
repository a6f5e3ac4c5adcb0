/** Authorization of transfers by signature. Read-only; runs before anything is reserved. */
import { z } from 'zod'
import { Failure } from '../../../core/failures/failure.ts'
import type { Chain, Wallet } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import {
  findIntent,
  findOpenIntent,
  findValidUntil,
  type Intent,
  type TransferFields,
} from '../signing/intent-store.ts'
import {
  type Authorized,
  buildRejection,
  type CallingKey,
  isAgentSignature,
  type Passkeys,
  safeSignature,
  verifySignature,
} from '../signing/verify-signature.ts'
import { buildCall } from '../store.ts'
import { gatewayAuthorization } from './gateway-authorization.ts'
import type { TransferParties } from './load-transfer-facts.ts'
import type { TransferAuthorization } from './send-transfer.ts'
import { isSameRoute } from './swap-route.ts'

/** How long the chain accepts a transfer that the gateway itself signs. */
const VALID_MS = 3 * 60_000

/** Signer and authorization of a transfer, as stored with its decision; never the signature itself. */
export const authorizedTransfer = z.strictObject({
  signer: z.enum(['sandbox', 'passkey', 'eoa', 'agent']),
  by: z.enum(['gateway', 'allowance', 'passkey', 'eoa']),
  signerId: z.string().nullable(),
  counter: z.number().nullable(),
  intentId: z.string().nullable(),
})

export type AuthorizedTransfer = z.output<typeof authorizedTransfer>

export const sandboxAuthorization: AuthorizedTransfer = {
  signer: 'sandbox',
  by: 'gateway',
  signerId: null,
  counter: null,
  intentId: null,
}

/**
 * Dependencies of authorization.
 * @property askedAt loads when this exact call requested its owner's approval, if it did.
 */
export interface TransferAuthorizationDependencies {
  readonly database: Connection
  readonly chain: Pick<Chain, 'buildOperation'>
  readonly passkeys: Passkeys
  readonly settings: { readonly mode: 'sandbox' | 'production' }
  readonly askedAt: () => Promise<Date | undefined>
}

/**
 * A transfer to authorize.
 * @property key calling key; null for a person. @property signature of its intent, if any. @property payoutId prepared
 * payout that it funds; an intent of one authorizes nothing else. @property scheduledFor due time of its owner's schedule.
 */
export interface SignedTransfer {
  readonly accountId: string
  readonly parties: TransferParties
  readonly key: CallingKey | null
  readonly transfer: TransferFields
  readonly signature: string | undefined
  readonly intentId: string | undefined
  readonly payoutId?: string | null
  readonly scheduledFor?: string | undefined
  readonly at: Date
}

/**
 * Authorizes a transfer. A key without a signature acts by its own credential and its owner's consent, within its
 * allowance on chain if the wallet belongs to its owner. A person signs an intent when the account has a signer. A
 * named intent is always checked. Also returns the intent that was signed, if any.
 * @throws Failure `signature_rejected`.
 */
export async function authorizeTransfer(
  dependencies: TransferAuthorizationDependencies,
  signed: SignedTransfer,
): Promise<{ readonly authorized: AuthorizedTransfer; readonly intent: Intent | undefined }> {
  const { settings } = dependencies
  const { key, signature, intentId } = signed
  const { wallet, hasEvmKey, hasPasskey } = signed.parties
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
  const guarded = hasEvmKey || hasPasskey || wallet.owner.kind !== 'gateway'
  // The owner proved a second factor for the schedule. What moves a wallet of the owner's own key is that key alone.
  if (key === null && signed.scheduledFor !== undefined) {
    gatewayAuthorization(wallet, null)
    return { authorized: sandboxAuthorization, intent: undefined }
  }
  const mustSign = guarded || settings.mode === 'production'
  const maySign = key?.kind === 'agent' && signature !== undefined && isAgentSignature(signature)
  // The request's own credential authorizes it: the signature over its body, the grant or the API key. An OAuth client
  // never has a key to sign with, so a signature it sends without an intent says nothing.
  const isByCredential = key !== null && intentId === undefined
  if (isByCredential && (signature === undefined || (key.kind === 'grant' && mustSign)))
    return { authorized: byCredential(wallet, key), intent: undefined }
  if (!mustSign && intentId === undefined && !maySign)
    return { authorized: sandboxAuthorization, intent: undefined }
  const intent = await intentFor(dependencies, signed)
  if (intent !== undefined) requireCurrent(dependencies, { wallet, intent, signed })
  if (mustSign || key?.kind === 'agent') {
    if (intent === undefined && !mustSign) return { authorized: sandboxAuthorization, intent }
    if (intent === undefined)
      throw buildRejection(
        signature === undefined
          ? 'The transfer is not signed.'
          : 'You have no open intent for exactly this transfer.',
        key,
      )
    if (signature === undefined) throw buildRejection('The transfer is not signed.', key)
    const verified = await verifySignature(dependencies, { wallet, intent, signature, key })
    return { authorized: { ...verified, intentId: intent.id }, intent }
  }
  return { authorized: { ...sandboxAuthorization, intentId: intent?.id ?? null }, intent }
}

function byCredential({ owner }: Wallet, { id: signerId }: CallingKey): AuthorizedTransfer {
  const by = owner.kind === 'gateway' ? 'gateway' : 'allowance'
  return { signer: 'agent', by, signerId, counter: null, intentId: null }
}

/** Finds the intent that must be signed. @throws Failure `signature_rejected` when the named intent does not fit. */
async function intentFor(
  { database, askedAt }: TransferAuthorizationDependencies,
  { accountId, key, transfer, intentId, payoutId = null, at }: SignedTransfer,
): Promise<Intent | undefined> {
  const keyId = key?.id ?? null
  if (intentId === undefined) {
    const find = (moment: Date) =>
      findOpenIntent(database, { accountId, keyId, transfer, payoutId, at: moment })
    const open = await find(at)
    const requestedAt = open === undefined ? await askedAt() : undefined
    return open ?? (requestedAt === undefined ? undefined : find(requestedAt))
  }
  const intent = await findIntent(database, { accountId, id: intentId })
  if (intent === undefined || intent.transfer === null || intent.agentId !== keyId)
    throw buildRejection('You have no such intent.', key)
  if (intent.usedAt !== null) throw buildRejection('This intent was already used.', key)
  if (intent.payoutId !== payoutId || !isSame(intent.transfer, transfer))
    throw buildRejection(
      'The intent is for another transfer: amount, token, destination and chain must be the same.',
      key,
    )
  const moment = intent.expiresAt > at ? at : await askedAt()
  if (moment === undefined || moment >= intent.expiresAt) throw buildRejection('The intent has expired.', key)
  return intent
}

/**
 * Checks that the wallet still has the owner it had when the intent was made.
 * @throws Failure `signature_rejected` otherwise.
 */
function requireCurrent(
  { chain }: TransferAuthorizationDependencies,
  { wallet, intent, signed }: { wallet: Wallet; intent: Intent; signed: SignedTransfer },
): void {
  const call = buildCall(signed.transfer)
  const { hash } = chain.buildOperation({
    wallet,
    id: intent.operationId,
    call,
    validUntil: findValidUntil(intent),
  })
  if (hash !== intent.operationHash)
    throw buildRejection('The owner of the wallet has changed since the intent was made.', signed.key)
}

function isSame(one: TransferFields, other: TransferFields): boolean {
  return (
    one.token === other.token &&
    one.units === other.units &&
    one.destination === other.destination &&
    one.chain === other.chain &&
    isSameRoute(one.route ?? null, other.route ?? null)
  )
}

export interface Assertion {
  readonly authenticatorData: string
  readonly clientDataJSON: string
  readonly signature: string
}

/** Builds the authorization that a transfer is sent with. @param assertion assertion of a passkey signature. */
export function buildAuthorization({
  authorized,
  intent,
  signature,
  assertion,
  at,
}: {
  authorized: AuthorizedTransfer
  intent: Intent | undefined
  signature: string | undefined
  assertion: Assertion | undefined
  at: Date
}): TransferAuthorization {
  const { signer } = authorized
  const withoutIntent = { message: '', signature, assertion }
  if (intent === undefined) return { signer, authorization: toAuthorization(authorized, withoutIntent) }
  const signedUntil = findValidUntil(intent)
  // The gateway signs now: a call may have waited for its approval longer than an intent lives.
  const isSignedByOwner = authorized.by === 'passkey' || authorized.by === 'eoa'
  const validUntil = isSignedByOwner ? signedUntil : new Date(at.getTime() + VALID_MS)
  return {
    signer,
    authorization: toAuthorization(authorized, { message: intent.message, signature, assertion }),
    intent: { id: intent.id, transferId: intent.operationId, validUntil },
  }
}

export function toAuthorization(
  { by, signerId }: Pick<Authorized, 'by' | 'signerId'>,
  {
    message,
    signature,
    assertion,
  }: { message: string; signature: string | undefined; assertion: Assertion | undefined },
): TransferAuthorization['authorization'] {
  switch (by) {
    case 'gateway':
      return { kind: 'gateway' }
    case 'allowance': {
      if (signerId === null) throw new Error('an allowance belongs to the key that signs')
      return { kind: 'allowance', agentId: signerId }
    }
    case 'eoa': {
      if (signature === undefined) throw new Error('an EVM key authorizes by its signature')
      return { kind: 'eoa', signature: safeSignature(signature) }
    }
    case 'passkey': {
      if (assertion === undefined) throw new Error('a passkey signature needs an assertion')
      const { authenticatorData, clientDataJSON, signature: der } = assertion
      return { kind: 'passkey', message, authenticatorData, clientDataJSON, signature: der }
    }
  }
}
