/** Loads the facts for the decision on a transfer, in one round trip, before anything is reserved. */
import type { AmlLimits } from '../../../../policies/aml/limits.ts'
import { type OutflowRule, outflowWindows } from '../../../../policies/aml/outflow-windows.ts'
import { windowsText } from '../../../books/spending/outflows.ts'
import {
  type ReviewRow,
  type ReviewVerdict,
  reviewSubject,
  toReviewVerdict,
} from '../../../books/spending/reviews.ts'
import type { Money, Stablecoin } from '../../../core/money/money.ts'
import type { Address, Wallet } from '../../../providers/chain/port.ts'
import { type Rates, valueInUsd } from '../../../providers/rates/port.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import { lowerCase, parseWallet, toAddress, type WalletColumns } from '../store.ts'

export interface TransferRequest {
  readonly accountId: string
  /** Key that requests the transfer; null for a person. */
  readonly keyId: string | null
  readonly destination: Address
  readonly chain: string
  readonly money: Money & { readonly asset: Stablecoin }
}

/** Source and destination of a transfer, in our own books. */
export interface TransferParties {
  /** Wallet of the source account; undefined if it has none. */
  readonly wallet: (Wallet & { readonly address: Address }) | undefined
  /** True if an EVM key signs for the wallet. */
  readonly hasEvmKey: boolean
  readonly hasPasskey: boolean
  /** True if the destination is also a wallet of the gateway. */
  readonly isOwnWallet: boolean
}

/** Compliance facts as the database returns them. */
export interface ComplianceRow {
  readonly country: string | null
  readonly is_blocked: boolean
  readonly travel_rule_id: string | null
  readonly unanswered: 'required' | 'sent' | 'accepted' | 'declined' | null
  readonly is_declined: boolean
  readonly listed_id: string | null
}

/**
 * Facts of a transfer before its decision.
 * @property exceeded AML rules that it would break if they applied to it.
 */
export interface TransferFacts {
  readonly parties: TransferParties
  readonly compliance: ComplianceRow
  readonly review: ReviewVerdict
  readonly exceeded: readonly OutflowRule[]
}

interface LoadDependencies {
  readonly database: Connection
  readonly rates: Rates
  readonly settings: { readonly aml: AmlLimits }
  readonly now: Date
  readonly onCalendar: (at: Date) => Date
}

interface Row extends WalletColumns, ComplianceRow {
  readonly address: string | null
  readonly has_evm_key: boolean
  readonly has_passkey: boolean
  readonly is_own_wallet: boolean
  readonly review_id: string | null
  readonly review_status: ReviewRow['status'] | null
  readonly review_lists: readonly string[] | null
  readonly is_released: boolean | null
  readonly exceeded: readonly { rule: OutflowRule }[]
}

const statement: Statement = {
  name: 'transfer_facts',
  text: `
    select f.*
    from rows from (jsonb_to_recordset($1::jsonb) as (
      account text, destination text, token text, units bigint, chain text, at timestamptz, windows text, subject text
    )) with ordinality as q
    cross join lateral transfer_facts(
      q.account, q.destination, q.token, q.units, q.chain, q.at, q.windows::jsonb, q.subject) f
    order by q.ordinality`,
}

/** @throws Failure `rates_unavailable`. */
export async function loadTransferFacts(
  { database, rates, settings, now, onCalendar }: LoadDependencies,
  { accountId, keyId, destination, chain, money }: TransferRequest,
): Promise<TransferFacts> {
  const payee = lowerCase(destination)
  const { usdMicros } = await valueInUsd(rates, money, now)
  const { velocity, structuring } = settings.aml
  // Which windows apply depends on the facts: all of them are read.
  const windows = outflowWindows(
    { usdMicros, amount: 0n, isOwnWallet: false, isOnRecord: false },
    { velocity, structuring, band: { from: 0n, below: 1n } },
  )
  const row = await database.gather<Row>(statement, {
    account: accountId,
    destination: payee,
    token: money.asset,
    units: money.units,
    chain,
    at: onCalendar(now),
    windows: windowsText(windows),
    subject: reviewSubject({ keyId, category: 'transfer', money, chain, payer: '{payer}', payee }),
  })
  const { address, review_id: id, review_status: status, review_lists: lists, is_released } = row
  return {
    parties: {
      wallet: address === null ? undefined : { ...parseWallet(accountId, row), address: toAddress(address) },
      hasEvmKey: row.has_evm_key,
      hasPasskey: row.has_passkey,
      isOwnWallet: row.is_own_wallet,
    },
    compliance: row,
    review:
      id === null || status === null || lists === null
        ? null
        : toReviewVerdict({ id, status, lists, is_released: is_released === true }),
    exceeded: row.exceeded.map(({ rule }) => rule),
  }
}
