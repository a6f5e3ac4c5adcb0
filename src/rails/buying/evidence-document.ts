/** The evidence of a purchase: the intent, the decision, what was signed, paid and delivered. A third party can verify it. */
import { type Selectable, sql } from 'kysely'
import { z } from 'zod'
import { toJson } from '../../core/base/json.ts'
import { toDecimal } from '../../core/money/money.ts'
import type { Chain } from '../../providers/chain/port.ts'
import { escrowCollectorAddress } from '../../providers/payment-escrow.ts'
import type { Connection } from '../../storage/database.ts'
import type { ArchivedDecisionTable } from '../../storage/schema.ts'
import { type Purchase, parseKind, toHex } from './store.ts'
import { payableAssets, protocols, schemes } from './terms.ts'
import { toStatus } from './view.ts'

const settlementLog = z.strictObject({
  position: z.int().describe('Index among the logs of its transaction.'),
  token: z.string().describe('Contract that logged it.'),
  from: z.string().describe('Payer.'),
  to: z.string().describe('Payee.'),
  units: z.string().describe('Amount in smallest units.'),
  nonce: z.string().nullable().describe('Nonce that the log before says was used; null for `upto`.'),
})

export const evidenceDocument = z.strictObject({
  version: z.literal('bursar-purchase/1').describe('Version.'),
  purchaseId: z.string().describe('`buy_…`'),
  status: z.enum(['delivered', 'undelivered', 'settlement_pending', 'failed']).describe('State then.'),
  madeAt: z.string().describe('When this was made, ISO 8601 UTC.'),
  intent: z
    .strictObject({
      url: z.string().describe('Requested URL.'),
      method: z.string().describe('HTTP method.'),
      requestHash: z.string().describe('SHA-256 of method, URL, fields and body, hex.'),
      purpose: z.string().nullable().describe('Its purpose.'),
    })
    .describe('The intent.'),
  decision: z
    .strictObject({
      decisionId: z.string().describe('`dec_…`'),
      accountId: z.string().describe('`acct_…`'),
      keyId: z.string().nullable().describe('`key_…`; null for a person.'),
      at: z.string().describe('ISO 8601 UTC.'),
      policyVersion: z.int().nullable().describe('Its version.'),
      policyHash: z.string().nullable().describe('Its SHA-256, hex.'),
      approvalId: z.string().nullable().describe('`appr_…`; null without one.'),
    })
    .describe('The decision.'),
  challenge: z
    .strictObject({
      protocol: z.enum(protocols).describe('Payment protocol.'),
      // Documents of earlier versions lack it.
      scheme: z.enum(schemes).optional().describe('`upto`: the amount is a maximum. Default: `exact`.'),
      chainId: z.int().describe('EVM chain id.'),
      network: z.string().describe('As the seller names it.'),
      asset: z.enum(payableAssets).describe('Stablecoin by symbol.'),
      token: z.string().describe('Its contract.'),
      amount: z.string().describe('Price, as a decimal.'),
      units: z.string().describe('Price in smallest units.'),
      payTo: z.string().describe('Payee.'),
      offer: z.looseObject({}).describe('As the seller wrote it.'),
    })
    .describe('The terms that were signed.'),
  authorization: z
    .strictObject({
      payer: z.string().describe('Purse.'),
      nonce: z.string().describe('EIP-3009 nonce; for `upto`, Permit2 nonce.'),
      validBefore: z.string().nullable().describe('End, ISO 8601 UTC; null: not signed.'),
      sinceBlock: z.string().nullable().describe('Last block before it was signed.'),
      credentialHash: z.string().nullable().describe('SHA-256 of its header, hex.'),
    })
    .describe('The authorization.'),
  settlement: z
    .strictObject({
      transaction: z.string().describe('Its hash.'),
      log: settlementLog.nullable().describe('The token’s log; null if the chain no longer has it.'),
    })
    .nullable()
    .describe('The payment on the chain; null without one.'),
  delivery: z
    .strictObject({
      at: z.string().describe('ISO 8601 UTC.'),
      hash: z.string().describe('SHA-256 of the body, hex.'),
    })
    .nullable()
    .describe('The delivery; null without one.'),
  failure: z.string().nullable().describe('Why unpaid or undelivered; null otherwise.'),
})
evidenceDocument.register(z.globalRegistry, { id: 'PurchaseEvidence' })

/** `typ` of its signature. */
export const EVIDENCE_TYPE = 'bursar-purchase+jwt'

export type EvidenceDocument = z.output<typeof evidenceDocument>

/** @throws Failure `provider_unavailable` when the chain does not answer. */
export async function buildEvidence(
  { database, chain, now }: { database: Connection; chain: Chain; now: Date },
  purchase: Purchase,
): Promise<EvidenceDocument> {
  const decision = await database.kysely
    .selectFrom(
      sql<Selectable<ArchivedDecisionTable>>`decision_known(${purchase.decision_id})`.as('decision'),
    )
    .select(['at', 'policy_version', 'policy_hash', 'facts'])
    .executeTakeFirstOrThrow()
  const { asset, protocol } = parseKind(purchase)
  const { delivered_at: deliveredAt, delivered_hash: hash, transaction_hash: transaction } = purchase
  const { approvalId } = z.looseObject({ approvalId: z.string().nullish() }).parse(decision.facts)
  return {
    version: 'bursar-purchase/1',
    purchaseId: purchase.id,
    status: toStatus(purchase),
    madeAt: now.toISOString(),
    intent: {
      url: purchase.url,
      method: purchase.method,
      requestHash: purchase.request_hash,
      purpose: purchase.purpose,
    },
    decision: {
      decisionId: purchase.decision_id,
      accountId: purchase.account_id,
      keyId: purchase.key_id,
      at: decision.at.toISOString(),
      policyVersion: decision.policy_version,
      policyHash: decision.policy_hash,
      approvalId: approvalId ?? null,
    },
    challenge: {
      protocol,
      scheme: purchase.scheme,
      chainId: chain.id,
      network: purchase.network,
      asset,
      token: purchase.token,
      amount: toDecimal({ asset, units: purchase.units }),
      units: purchase.units.toString(),
      payTo: purchase.pay_to,
      offer: z.looseObject({}).parse(toJson(purchase.offer)),
    },
    authorization: {
      payer: purchase.payer,
      nonce: purchase.nonce,
      validBefore: purchase.valid_before?.toISOString() ?? null,
      sinceBlock: purchase.since_block?.toString() ?? null,
      credentialHash: purchase.credential_hash,
    },
    settlement:
      transaction === null ? null : { transaction, log: await findLog(chain, purchase, transaction) },
    delivery: deliveredAt === null || hash === null ? null : { at: deliveredAt.toISOString(), hash },
    failure: deliveredAt === null ? purchase.failure : null,
  }
}

async function findLog(
  chain: Pick<Chain, 'transaction'>,
  purchase: Purchase,
  transaction: string,
): Promise<z.output<typeof settlementLog> | null> {
  const mined = await chain.transaction(toHex(transaction))
  const log = mined?.transfers.find(({ authorization, isUpto, from, to }) =>
    purchase.scheme === 'upto'
      ? isUpto && from === purchase.payer && to === purchase.pay_to
      : authorization?.nonce.toLowerCase() === purchase.nonce &&
        authorization.authorizer.toLowerCase() === purchase.payer,
  )
  if (log === undefined) return null
  const { position, token, from, to, units } = log
  const nonce = purchase.scheme === 'upto' ? null : purchase.nonce
  return { position, token, from, to, units: units.toString(), nonce }
}

/** Checks a document against itself. @returns what contradicts, in words; empty: nothing. */
export function judgeEvidence({
  status,
  challenge,
  authorization,
  settlement,
}: EvidenceDocument): readonly string[] {
  const isPaid = settlement !== null
  const same = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()
  const log = settlement?.log ?? null
  const isUpto = challenge.scheme === 'upto'
  return [
    // A voucher is paid with others, at the end of its channel.
    ...(status === 'undelivered' && !isPaid && challenge.scheme !== 'batch-settlement'
      ? ['it is said to be paid, without a payment']
      : []),
    ...(isPaid && authorization.validBefore === null ? ['it is paid, but was never signed'] : []),
    ...(log === null ||
    (same(log.token, challenge.token) &&
      same(log.from, authorization.payer) &&
      same(log.to, challenge.scheme === 'auth-capture' ? escrowCollectorAddress : challenge.payTo) &&
      (isUpto
        ? BigInt(log.units) <= BigInt(challenge.units) && log.nonce === null
        : log.units === challenge.units && same(log.nonce ?? '', authorization.nonce)))
      ? []
      : ['the payment is not the one that was signed']),
  ]
}
