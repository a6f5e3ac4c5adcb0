/** Reads an account's decisions. */
import { getAddress, isAddress } from 'viem'
import { z } from 'zod'
import { formatUsd } from '../../../policies/usd.ts'
import { isAuthentic } from '../../books/spending/authenticate.ts'
import { type ContentRow, contentColumns, toContent } from '../../books/spending/decision-content.ts'
import { cutPage, type Page } from '../../core/base/page.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { isReceiptValid, signReceipt } from './receipt.ts'
import { readKeySet } from './receipt-keys.ts'
import type { SigningKey } from './signing-key.ts'
import { wholeReceipt } from './store.ts'

export const decisionView = z.strictObject({
  decisionId: z.string().describe('`dec_…`.'),
  at: z.string().describe('Time of the decision, ISO 8601 UTC.'),
  agentId: z.string().nullable().describe('`key_…`; null for spends by a person.'),
  operation: z.string().describe('The operation, such as `wallets.transfer`.'),
  verdict: z.string().describe('`allow`, `deny`, `insufficient_funds` or `approval_required`.'),
  amount: z.string().nullable().describe('Amount of the spend, as a decimal string.'),
  asset: z.string().nullable().describe('Asset of the amount.'),
  usd: z.string().nullable().describe('Amount counted against budgets, in USD as a decimal string.'),
  category: z.string().nullable().describe('Category of the spend.'),
  counterparty: z
    .string()
    .nullable()
    .describe('Recipient of the spend: an EVM address, or `merchant:` and the id of a merchant.'),
  cardId: z.string().nullable().describe('`card_…`, for card purchases.'),
  merchant: untrustedTextOrNull('Name of the merchant, for card purchases.'),
  mcc: z.string().nullable().describe('Merchant category code (ISO 18245), for card purchases.'),
  chain: z.string().nullable().describe('Chain of the spend.'),
  task: untrustedTextOrNull('Label of its task.'),
  policyVersion: z.int().nullable().describe('Version of the key’s policy; null for spends by a person.'),
  policyHash: z.string().nullable().describe('SHA-256 of the policy’s canonical JSON, hex.'),
  violations: z.array(z.looseObject({ rule: z.string() })).describe('All violated rules.'),
  receipt: z
    .string()
    .nullable()
    .describe(
      'JWS signed by the gateway; its keys are at `/.well-known/jwks.json`. Null for a decision that no gateway has authenticated.',
    ),
  verified: z.boolean().describe('True if the receipt is ours and says the same.'),
  sequence: z.int().nullable().describe('Position in the decision chain; null until the decision is sealed.'),
  hash: z.string().nullable().describe('Hash in the decision chain, hex.'),
})
decisionView.register(z.globalRegistry, { id: 'Decision' })

/** Filter of decisions; null matches any. @property object id of the transfer, purchase, payout, order or card purchase. */
export interface DecisionQuery {
  readonly accountId: string
  readonly keyId: string | null
  readonly verdict: string | null
  readonly id: string | null
  readonly object: string | null
  readonly page: Page
}

interface Row extends ContentRow {
  readonly sequence: bigint | null
  readonly hash: string | null
  readonly receipt: string | null
  readonly issuer: string | null
  readonly mac: string | null
}

const statement: Statement = {
  name: 'audit_of_account',
  text: `select ${contentColumns}, s.sequence, s.hash, s.receipt, s.issuer, d.mac
    from (
      select * from decision
      where account_id = $1 and id < coalesce($2, '~')
        and ($3::text is null or key_id = $3) and ($4::text is null or verdict = $4)
        and ($6::text is null or id = $6)
        and ($7::text is null or id in (
          select decision_id from transfer where id = $7 union all select decision_id from relay where id = $7
          union all select decision_id from purchase where id = $7 union all select decision_id from payout where id = $7
          union all select decision_id from investing_order where id = $7
          union all select decision_id from card_authorization where id = $7 and decision_id is not null))
      order by id desc limit $5
    ) d left join decision_seal s on s.decision_id = d.id
    order by d.id desc`,
}

interface Showing {
  readonly database: Connection
  readonly settings: {
    readonly dataKey: Uint8Array
    readonly receiptKey: SigningKey
    readonly origin: string
  }
}

const archived: Statement = {
  name: 'audit_archived',
  text: `select to_char(d.at at time zone 'UTC', 'YYYY-MM') as month from archived_decision d
    where d.account_id = $1 and ($2::text is null or d.key_id = $2) and d.id in (
      select $3::text
      union all select decision_id from transfer where id = $4 union all select decision_id from relay where id = $4
      union all select decision_id from purchase where id = $4 union all select decision_id from payout where id = $4
      union all select decision_id from investing_order where id = $4
      union all select decision_id from card_authorization where id = $4 and decision_id is not null)`,
}

/** @throws Failure `not_found` when a decision is archived: what is kept of it has no receipt and no rules. */
export async function refuseArchived(
  database: Connection,
  {
    accountId,
    keyId,
    id,
    object,
  }: { accountId: string; keyId: string | null; id: string | null; object: string | null },
): Promise<void> {
  const [row] = await database.call<{ month: string }>(archived, [accountId, keyId, id, object])
  if (row !== undefined)
    throw new Failure('not_found', `This decision was archived with ${row.month}.`, {
      hint: 'The operator of the gateway has its receipt, in the archive of that month.',
    })
}

/** Newest first. @throws Failure `not_found` when the one that was asked for is archived. */
export async function showDecisions(
  showing: Showing,
  { accountId, keyId, verdict, id, object, page }: DecisionQuery,
): Promise<{ decisions: z.output<typeof decisionView>[]; nextCursor: string | null }> {
  const found = await showing.database.call<Row>(statement, [
    accountId,
    page.after,
    keyId,
    verdict,
    page.limit + 1,
    id,
    object,
  ])
  if (found.length === 0 && (id ?? object) !== null)
    await refuseArchived(showing.database, { accountId, keyId, id, object })
  const { rows, nextCursor } = cutPage(found, page)
  return { decisions: await viewRows(showing, rows), nextCursor }
}

const known: Statement = {
  name: 'audit_of_decisions',
  text: `select ${contentColumns}, s.sequence, s.hash, s.receipt, s.issuer, d.mac
    from decision d left join decision_seal s on s.decision_id = d.id
    where d.account_id = $1 and d.id = any($2::text[])`,
}

/** Shows decisions by their ids, in no order. */
export async function showDecisionsById(
  showing: Showing,
  { accountId, ids }: { accountId: string; ids: readonly string[] },
): Promise<readonly z.output<typeof decisionView>[]> {
  return viewRows(showing, await showing.database.call<Row>(known, [accountId, [...ids]]))
}

async function viewRows(
  { database, settings }: Showing,
  rows: readonly Row[],
): Promise<z.output<typeof decisionView>[]> {
  const { receiptKey } = settings
  const keySet = await readKeySet(database, settings.dataKey)
  const decisions = rows.map(async (row) => {
    const content = toContent(row)
    const isOurs = isAuthentic(settings.dataKey, content, row.mac)
    const sign = () => (isOurs ? signReceipt(receiptKey, { issuer: settings.origin, content }) : null)
    const receipt =
      row.receipt === null
        ? await sign()
        : wholeReceipt({ receipt: row.receipt, issuer: row.issuer }, content)
    return {
      ...viewDecision(content),
      receipt,
      verified: isOurs && receipt !== null && (await isReceiptValid(keySet, content, receipt)),
      sequence: row.sequence === null ? null : Number(row.sequence),
      hash: row.hash,
    }
  })
  return Promise.all(decisions)
}

/** True if the key belongs or belonged to the account. */
export async function ownsKey(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string },
): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('access_key')
    .select('id')
    .where('id', '=', keyId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row !== undefined
}

const text = z.string().nullable().catch(null)
const shownFacts = z
  .object({
    amount: text,
    asset: text,
    usdMicros: z.string().regex(/^\d+$/).nullable().catch(null),
    category: text,
    counterparty: text,
    chain: text,
    mcc: text,
    task: text,
    found: z.object({ cardId: text, merchant: text }).catch({ cardId: null, merchant: null }),
  })
  .catch({
    amount: null,
    asset: null,
    usdMicros: null,
    category: null,
    counterparty: null,
    chain: null,
    mcc: null,
    task: null,
    found: { cardId: null, merchant: null },
  })
const shownViolations = z.array(z.looseObject({ rule: z.string() })).catch([])

function viewDecision(content: ReturnType<typeof toContent>) {
  const { usdMicros, counterparty, found, ...facts } = shownFacts.parse(content.facts)
  return {
    decisionId: content.decisionId,
    at: content.at,
    agentId: content.keyId,
    operation: content.operation,
    verdict: content.verdict,
    ...facts,
    ...found,
    counterparty: counterparty !== null && isAddress(counterparty) ? getAddress(counterparty) : counterparty,
    usd: usdMicros === null ? null : formatUsd(BigInt(usdMicros)),
    policyVersion: content.policyVersion,
    policyHash: content.policyHash,
    violations: shownViolations.parse(content.violations),
  }
}
