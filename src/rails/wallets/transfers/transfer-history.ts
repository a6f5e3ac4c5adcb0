/** Transfers as their account sees them. */
import { sql } from 'kysely'
import { getAddress } from 'viem'
import { z } from 'zod'
import { partOperations } from '../../../books/spending/part-operations.ts'
import { findMemos } from '../../../books/spending/spend-note.ts'
import { cutPage, nextCursor, type Page } from '../../../core/base/page.ts'
import { untrustedTextOrNull } from '../../../core/base/untrusted-text.ts'
import { type Stablecoin, stablecoins, toDecimal } from '../../../core/money/money.ts'
import type { Address } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { lowerCase, parseStablecoin, toAddress } from '../store.ts'

export const transferStates = [
  'funding',
  'reserved',
  'submitted',
  'settlement_pending',
  'confirmed',
  'failed',
] as const

export const transferView = z.strictObject({
  transferId: z.string().describe('`tx_…`'),
  state: z
    .enum(transferStates)
    .describe(
      '`funding`: its money is on its way from another chain; `reserved`, `submitted` and `settlement_pending` are open; `confirmed` and `failed` are final.',
    ),
  token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
  amount: z.string().describe('Amount as a decimal string of the token.'),
  destination: z.string().describe('EVM address of the payee.'),
  contact: untrustedTextOrNull('Name of the contact that the payee is.'),
  chain: z.string().describe('Chain by name.'),
  transactionHash: z.string().nullable().describe('Hash of the transaction; null before it was broadcast.'),
  authorization: z
    .enum(['sandbox', 'passkey', 'eoa', 'agent', 'payer'])
    .describe(
      'Signer of the transfer; `sandbox`: the sandbox’s own key; `payer`: the payer of a gasless transfer.',
    ),
  decisionId: z.string().describe('`dec_…`: the policy decision that allowed it.'),
  failure: z
    .string()
    .nullable()
    .describe('Reason for a failure, after which the money is available again; null otherwise.'),
  memo: untrustedTextOrNull('Memo of the payer; null without one.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  updatedAt: z.string().describe('When its state last changed, ISO 8601 UTC.'),
})
transferView.register(z.globalRegistry, { id: 'Transfer' })

type TransferView = z.input<typeof transferView>

export const transferPage = z.strictObject({
  transfers: z.array(transferView).describe('Transfers of this page, newest first.'),
  nextCursor,
})

/** Filter of a transfer list. @property from first moment, inclusive. @property to last moment, exclusive. */
export interface TransferFilter {
  readonly state?: TransferView['state'] | undefined
  readonly asset?: Stablecoin | undefined
  readonly destination?: Address | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

const relayColumns = [
  'id',
  'state',
  'token',
  'units',
  'destination',
  'chain',
  'transaction_hash',
  'decision_id',
  'failure',
  'created_at',
  'updated_at',
] as const

const columns = [...relayColumns, 'signer'] as const

/** Lists an account's transfers and the relays it submitted for others, newest first, without those that are part of another spend. */
export async function listTransfers(
  database: Connection,
  { accountId, filter, page }: { accountId: string; filter: TransferFilter; page: Page },
): Promise<z.input<typeof transferPage>> {
  const { state, asset, destination, from, to } = filter
  let query = database.kysely
    .selectFrom(
      database.kysely
        .selectFrom('transfer')
        .select([...relayColumns, sql<TransferView['authorization']>`signer`.as('signer'), 'account_id'])
        .where('funding_id', 'is', null)
        .where(sql`(decision_known(transfer.decision_id)).operation`, 'not in', partOperations)
        .unionAll(({ selectFrom }) =>
          selectFrom('relay').select([
            ...relayColumns,
            sql<TransferView['authorization']>`'payer'::text`.as('signer'),
            'account_id',
          ]),
        )
        .as('either'),
    )
    .select(columns)
    .where('account_id', '=', accountId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  if (state !== undefined) query = query.where('state', '=', state)
  if (asset !== undefined) query = query.where('token', '=', asset)
  if (destination !== undefined) query = query.where('destination', '=', lowerCase(destination))
  if (from !== undefined) query = query.where('created_at', '>=', new Date(from))
  if (to !== undefined) query = query.where('created_at', '<', new Date(to))
  const found = await query
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  const { rows, nextCursor: next } = cutPage(found, page)
  const memos = await findMemos(
    database,
    rows.map(({ decision_id }) => decision_id),
  )
  return { transfers: rows.map((row) => viewTransfer(row, memos)), nextCursor: next }
}

/** Finds one of an account's transfers or relays. */
export async function findOwnTransfer(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<TransferView | undefined> {
  const row = await database.kysely
    .selectFrom('transfer')
    .select(columns)
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (row !== undefined) return viewTransfer(row, await findMemos(database, [row.decision_id]))
  const relay = await database.kysely
    .selectFrom('relay')
    .select(relayColumns)
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (relay === undefined) return undefined
  return viewTransfer({ ...relay, signer: 'payer' }, await findMemos(database, [relay.decision_id]))
}

interface Row {
  readonly id: string
  readonly state: TransferView['state']
  readonly token: string
  readonly units: bigint
  readonly destination: string
  readonly chain: string
  readonly transaction_hash: string | null
  readonly signer: TransferView['authorization']
  readonly decision_id: string
  readonly failure: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

function viewTransfer(row: Row, memos: ReadonlyMap<string, string>): TransferView {
  const token = parseStablecoin(row.token)
  return {
    transferId: row.id,
    state: row.state,
    token,
    amount: toDecimal({ asset: token, units: row.units }),
    destination: getAddress(toAddress(row.destination)),
    contact: null,
    chain: row.chain,
    transactionHash: row.transaction_hash,
    authorization: row.signer,
    decisionId: row.decision_id,
    failure: row.failure,
    memo: memos.get(row.decision_id) ?? null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
