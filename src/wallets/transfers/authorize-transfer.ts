/** Whether a transfer is signed for. Reads only; runs before anything is reserved. */
import { z } from 'zod'
import { Failure } from '../../failures/failure.ts'
import type { Chain, Wallet } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'
import {
  findIntent,
  findOpenIntent,
  type Intent,
  type TransferFields,
  validUntilOf,
} from '../signing/intent-store.ts'
import {
  type Authorized,
  type CallingKey,
  isAgentSignature,
  type Passkeys,
  rejected,
  safeSignature,
  verifySignature,
} from '../signing/verify-signature.ts'
import type { TransferParties } from './load-transfer-parties.ts'
import type { TransferAuthorization } from './send-transfer.ts'

/** How long the chain takes a transfer that the gateway itself signs for. */
const VALID_MS = 3 * 60_000

/** Who signed for a transfer and what, as its decision keeps it; never the signature. */
export const authorizedTransfer = z.strictObject({
  signer: z.enum(['sandbox', 'passkey', 'eoa', 'agent']),
  by: z.enum(['gateway', 'allowance', 'passkey', 'eoa']),
  signerId: z.string().nullable(),
  counter: z.number().nullable(),
  intentId: z.string().nullable(),
})

/** {@link authorizedTransfer}, parsed. */
export type AuthorizedTransfer = z.output<typeof authorizedTransfer>

/** The gateway's own key signs. */
export const sandboxAuthorization: AuthorizedTransfer = {
  signer: 'sandbox',
  by: 'gateway',
  signerId: null,
  counter: null,
  intentId: null,
}

/** What authorizing needs. @property askedAt when this very call asked its owner for an approval, if it did. */
export interface TransferAuthorizationDependencies {
  readonly database: Connection
  readonly chain: Pick<Chain, 'operationOf'>
  readonly passkeys: Passkeys
  readonly settings: { readonly mode: 'sandbox' | 'production' }
  readonly askedAt: () => Promise<Date | undefined>
}

/** What is to be authorized. @property key that calls; null: a person does. */
export interface SignedTransfer {
  readonly accountId: string
  readonly ends: TransferParties
  readonly key: CallingKey | null
  readonly transfer: TransferFields
  readonly signature: string
  readonly intentId: string | undefined
  readonly at: Date
}

/**
 * Checks the signature of a transfer. Where the account has a signer, or the caller names an intent, one must be signed;
 * OAuth clients act by their owner's consent instead.
 * @throws Failure `signature_rejected`.
 */
export async function authorizeTransfer(
  authorizing: TransferAuthorizationDependencies,
  signed: SignedTransfer,
): Promise<AuthorizedTransfer> {
  const { passkeys, settings } = authorizing
  const { accountId, key, signature, intentId } = signed
  const { wallet, hasEvmKey } = signed.ends
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
  const guarded = hasEvmKey || (await passkeys.has(accountId))
  const mustSign = guarded || settings.mode === 'production'
  const maySign = key?.kind === 'agent' && isAgentSignature(signature)
  if (!mustSign && intentId === undefined && !maySign) return sandboxAuthorization
  // An OAuth client has nothing to sign with. Its owner said on the consent page what it may spend, and the chain limits it.
  if (key?.kind === 'grant' && intentId === undefined) return byGrant(wallet, key)
  const intent = await intentFor(authorizing, signed)
  if (intent !== undefined) requireCurrent(authorizing, { wallet, intent, signed })
  if (mustSign || key?.kind === 'agent') {
    if (intent === undefined && !mustSign) return sandboxAuthorization
    if (intent === undefined) throw rejected('There is no open intent of yours for this very transfer.', key)
    const verified = await verifySignature(authorizing, { wallet, intent, signature, key })
    return { ...verified, intentId: intent.id }
  }
  return { ...sandboxAuthorization, intentId: intent?.id ?? null }
}

function byGrant({ owner }: Wallet, { id: signerId }: CallingKey): AuthorizedTransfer {
  const by = owner.kind === 'gateway' ? 'gateway' : 'allowance'
  return { signer: 'agent', by, signerId, counter: null, intentId: null }
}

/** The intent that the signature must be of. @throws Failure `signature_rejected` where the one that was named does not fit. */
async function intentFor(
  { database, askedAt }: TransferAuthorizationDependencies,
  { accountId, key, transfer, intentId, at }: SignedTransfer,
): Promise<Intent | undefined> {
  const keyId = key?.id ?? null
  if (intentId === undefined) {
    const find = (moment: Date) => findOpenIntent(database, { accountId, keyId, transfer, at: moment })
    const open = await find(at)
    const asked = open === undefined ? await askedAt() : undefined
    return open ?? (asked === undefined ? undefined : find(asked))
  }
  const intent = await findIntent(database, { accountId, id: intentId })
  if (intent === undefined || intent.transfer === null || intent.agentId !== keyId)
    throw rejected('There is no such intent of yours.', key)
  if (intent.usedAt !== null) throw rejected('This intent was used already.', key)
  if (!isSame(intent.transfer, transfer))
    throw rejected(
      'The intent is for another transfer: amount, token, destination and chain must be the same.',
      key,
    )
  const moment = intent.expiresAt > at ? at : await askedAt()
  if (moment === undefined || moment >= intent.expiresAt) throw rejected('The intent has expired.', key)
  return intent
}

/** What was signed is an operation by the owner of that moment. @throws Failure `signature_rejected` where there is another now. */
function requireCurrent(
  { chain }: TransferAuthorizationDependencies,
  { wallet, intent, signed }: { wallet: Wallet; intent: Intent; signed: SignedTransfer },
): void {
  const { token, units, destination: to } = signed.transfer
  const call = { kind: 'transfer', token, to, units } as const
  const { hash } = chain.operationOf({
    wallet,
    id: intent.operationId,
    call,
    validUntil: validUntilOf(intent),
  })
  if (hash !== intent.operationHash)
    throw rejected('The wallet has got another owner since the intent was made.', signed.key)
}

function isSame(one: TransferFields, other: TransferFields): boolean {
  return (
    one.token === other.token &&
    one.units === other.units &&
    one.destination === other.destination &&
    one.chain === other.chain
  )
}

/** The parts of a passkey's assertion, base64url. */
export interface Assertion {
  readonly authenticatorData: string
  readonly clientDataJSON: string
  readonly signature: string
}

/** Builds the authorization that a transfer is sent with. @param assertion the signature, where it is a passkey's. */
export async function buildAuthorization(
  database: Connection,
  {
    authorized,
    accountId,
    signature,
    assertion,
    at,
  }: {
    authorized: AuthorizedTransfer
    accountId: string
    signature: string
    assertion: Assertion | undefined
    at: Date
  },
): Promise<TransferAuthorization> {
  const { signer, intentId } = authorized
  const ofNoIntent = { message: '', signature, assertion }
  if (intentId === null) return { signer, authorization: authorizationOf(authorized, ofNoIntent) }
  const intent = await findIntent(database, { accountId, id: intentId })
  if (intent === undefined) throw new Error(`the intent ${intentId} is gone`)
  const signedUntil = validUntilOf(intent)
  // What the gateway signs is signed now: a call may have waited for its approval longer than an intent lives.
  const isOwners = authorized.by === 'passkey' || authorized.by === 'eoa'
  const validUntil = isOwners ? signedUntil : new Date(at.getTime() + VALID_MS)
  return {
    signer,
    authorization: authorizationOf(authorized, { message: intent.message, signature, assertion }),
    intent: { id: intent.id, transferId: intent.operationId, validUntil },
  }
}

/** What the chain is told. */
export function authorizationOf(
  { by, signerId }: Pick<Authorized, 'by' | 'signerId'>,
  { message, signature, assertion }: { message: string; signature: string; assertion: Assertion | undefined },
): TransferAuthorization['authorization'] {
  switch (by) {
    case 'gateway':
      return { kind: 'gateway' }
    case 'allowance':
      return { kind: 'allowance', agentId: signerId ?? '' }
    case 'eoa':
      return { kind: 'eoa', signature: safeSignature(signature) }
    case 'passkey': {
      if (assertion === undefined) throw new Error('a passkey signs by an assertion')
      const { authenticatorData, clientDataJSON, signature: der } = assertion
      return { kind: 'passkey', message, authenticatorData, clientDataJSON, signature: der }
    }
  }
}
