/**
 * Intents: the exact text a person or an agent signs before money moves. It names the chain's operation by its hash.
 */
import { createHash } from 'node:crypto'
import { getAddress } from 'viem'
import { z } from 'zod'
import type { NewId } from '../../../core/base/ids.ts'
import { canonicalJson } from '../../../core/base/json.ts'
import { toDecimal } from '../../../core/money/money.ts'
import type { Address, Chain, TypedData, Wallet, WalletCall } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { buildCall } from '../store.ts'
import {
  type AllowanceFields,
  findValidUntil,
  INTENT_LIFETIME_MS,
  insertIntent,
  type TransferFields,
} from './intent-store.ts'

export const typedDataView = z
  .strictObject({
    domain: z.record(z.string(), z.union([z.string(), z.number()])),
    types: z.record(z.string(), z.array(z.strictObject({ name: z.string(), type: z.string() }))),
    primaryType: z.string(),
    message: z.record(z.string(), z.union([z.string(), z.number()])),
  })
  .describe('EIP-712 data to sign with an EVM key that owns the wallet; integers are decimal strings.')
  .meta({ id: 'TypedData' })

export const intentView = z.strictObject({
  intentId: z.string().describe('`int_…`; return it with the signature.'),
  intent: z
    .record(z.string(), z.union([z.string(), z.number()]))
    .describe('Content to sign; `hash` is the SHA-256 of its RFC 8785 JSON.'),
  hash: z
    .string()
    .describe('SHA-256 of the intent’s RFC 8785 JSON, 0x hex. An agent signs these 32 bytes with Ed25519.'),
  challenge: z.string().describe('The same bytes in base64url: the challenge for a passkey.'),
  typedData: typedDataView,
  expiresAt: z.string().describe('When it expires, ISO 8601 UTC.'),
})
intentView.register(z.globalRegistry, { id: 'Intent' })

export type IntentView = z.input<typeof intentView>

export interface IntentParts {
  readonly database: Connection
  readonly chain: Pick<Chain, 'name' | 'id' | 'buildOperation'>
  readonly newId: NewId
}

type OwnedWallet = Wallet & { readonly address: Address }

/** Creates the intent of a payment. @param keyId requesting key; null for a person. */
export function makeTransferIntent(
  parts: IntentParts,
  {
    wallet,
    keyId,
    transfer,
    at,
  }: { wallet: OwnedWallet; keyId: string | null; transfer: TransferFields; at: Date },
): Promise<IntentView> {
  const { token, units, destination } = transfer
  return makeIntent(parts, {
    wallet,
    at,
    agentId: keyId,
    operationId: parts.newId('tx', at),
    call: { kind: 'transfer', token, to: destination, units },
    content: {
      kind: 'transfer',
      amount: toDecimal({ asset: token, units }),
      token,
      destination: getAddress(destination),
      ...(keyId === null ? {} : { keyId }),
    },
    transfer,
    allowance: null,
  })
}

/**
 * Creates the intent of the transfer that funds a person's payout. The signed text names the payout with its terms.
 * @param said members of the text besides those of the transfer.
 */
export function makePayoutIntent(
  parts: IntentParts,
  {
    wallet,
    payoutId,
    transfer,
    said,
    at,
  }: {
    wallet: OwnedWallet
    payoutId: string
    transfer: TransferFields
    said: Readonly<Record<string, string>>
    at: Date
  },
): Promise<IntentView> {
  return makeFundingIntent(parts, {
    wallet,
    transfer,
    at,
    said: { ...said, kind: 'payout', payoutId },
    payoutId,
  })
}

/**
 * Creates the intent of the transfer that funds a person's purchase: to the purse, which pays the seller.
 * @param said terms of the purchase, as members of the text.
 */
export function makePurchaseIntent(
  parts: IntentParts,
  {
    wallet,
    transfer,
    said,
    at,
  }: {
    wallet: OwnedWallet
    transfer: TransferFields
    said: Readonly<Record<string, string>>
    at: Date
  },
): Promise<IntentView> {
  return makeFundingIntent(parts, { wallet, transfer, at, said: { ...said, kind: 'purchase' } })
}

/** Creates the intent of a swap: the transfer to the desk, with the route that the desk executes. @param said its terms. */
export function makeSwapIntent(
  parts: IntentParts,
  {
    wallet,
    transfer,
    said,
    at,
  }: {
    wallet: OwnedWallet
    transfer: TransferFields
    said: Readonly<Record<string, string>>
    at: Date
  },
): Promise<IntentView> {
  return makeFundingIntent(parts, { wallet, transfer, at, said: { ...said, kind: 'swap' } })
}

/** Creates the intent of a transfer that pays for something else, which `said` describes. */
function makeFundingIntent(
  parts: IntentParts,
  {
    wallet,
    transfer,
    said,
    at,
    ...payout
  }: {
    wallet: OwnedWallet
    transfer: TransferFields
    said: Readonly<Record<string, string>>
    at: Date
    payoutId?: string
  },
): Promise<IntentView> {
  const { token, units, destination } = transfer
  return makeIntent(parts, {
    wallet,
    at,
    agentId: null,
    operationId: parts.newId('tx', at),
    call: buildCall(transfer),
    content: {
      ...said,
      amount: toDecimal({ asset: token, units }),
      token,
      destination: getAddress(destination),
    },
    transfer,
    allowance: null,
    ...payout,
  })
}

/**
 * Creates the intent by which an owner sets an agent's allowance.
 * @param dailyMax the same amount as a decimal string of US dollars.
 */
export function makeAllowanceIntent(
  parts: IntentParts,
  {
    wallet,
    allowance,
    dailyMax,
    at,
  }: { wallet: OwnedWallet; allowance: AllowanceFields; dailyMax: string; at: Date },
): Promise<IntentView> {
  const { agentId } = allowance
  return makeIntent(parts, {
    wallet,
    at,
    agentId,
    operationId: `allowance ${parts.newId('tx', at)}`,
    call: { kind: 'allowance', ...allowance },
    content: { kind: 'allowance', agentId, dailyMax, currency: 'USD' },
    transfer: null,
    allowance,
  })
}

async function makeIntent(
  { database, chain, newId }: IntentParts,
  input: {
    wallet: OwnedWallet
    at: Date
    agentId: string | null
    operationId: string
    call: WalletCall
    content: Readonly<Record<string, string>>
    transfer: TransferFields | null
    allowance: AllowanceFields | null
    payoutId?: string
  },
): Promise<IntentView> {
  const { wallet, at, operationId, call, content, agentId, transfer, allowance, payoutId = null } = input
  const id = newId('int', at)
  const expiresAt = new Date(at.getTime() + INTENT_LIFETIME_MS)
  const validUntil = findValidUntil({ expiresAt })
  const operation = chain.buildOperation({ wallet, id: operationId, call, validUntil })
  const intent = {
    ...content,
    intentId: id,
    accountId: wallet.accountId,
    wallet: getAddress(wallet.address),
    chain: chain.name,
    chainId: chain.id,
    operationId,
    operationHash: operation.hash,
    expiresAt: expiresAt.toISOString(),
  }
  const message = canonicalJson(intent)
  const digest = createHash('sha256').update(message).digest()
  const hash = `0x${digest.toString('hex')}` as const
  await insertIntent(database, {
    id,
    accountId: wallet.accountId,
    agentId,
    message,
    hash,
    operationHash: operation.hash,
    operationId,
    transfer,
    allowance,
    payoutId,
    chain: chain.name,
    createdAt: at,
    expiresAt,
  })
  return {
    intentId: id,
    intent,
    hash,
    challenge: digest.toString('base64url'),
    typedData: plain(operation.typedData),
    expiresAt: expiresAt.toISOString(),
  }
}

function plain({ domain, types, primaryType, message }: TypedData): IntentView['typedData'] {
  const shown = Object.entries(types).map(([name, members]) => [
    name,
    members.map((member) => ({ ...member })),
  ])
  return { domain: { ...domain }, types: Object.fromEntries(shown), primaryType, message: { ...message } }
}
