/** What left a wallet lately, as the AML rules count it. */
import { bandUnder, type Structuring } from '../../policies/aml/structuring.ts'
import type { Sent, VelocityWindow } from '../../policies/aml/velocity.ts'
import type { TravelRuleThreshold } from '../../policies/travel-rule.ts'
import { moneyOf, type Stablecoin, stablecoinCurrency, stablecoins } from '../money.ts'
import type { RateTable } from '../rate-table.ts'
import type { Connection, Statement } from '../storage/database.ts'
import { usdMicrosAt } from '../usd-value.ts'

/** Smaller amounts are dust: neither judged nor looked back at. One whole token, in smallest units. */
export const LEAST_JUDGED_UNITS = 1_000_000n

/** What left within each velocity window, and how many transfers to strangers stayed just under the threshold. */
export interface PastTransfers {
  readonly sent: readonly Sent[]
  readonly justUnder: number
}

/** A question to the table. Null: whatever it is. */
interface Question {
  readonly since: Date
  readonly token: Stablecoin | null
  readonly fromUnits: bigint
  readonly belowUnits: bigint | null
  /** Whether wallets of the gateway itself do not count. */
  readonly outside: boolean
}

interface Row {
  readonly ordinal: number
  readonly token: Stablecoin
  readonly units: string
  readonly count: number
}

// The literal is the index' own condition: only so is it used.
const statement: Statement = {
  name: 'wallets_past_transfers',
  text: `select q.ordinal, t.token, sum(t.units)::text as units, count(*)::int as count
    from jsonb_to_recordset($2::jsonb) as q
      (ordinal int, since timestamptz, token text, from_units bigint, below_units bigint, outside boolean)
    join transfer t on t.account_id = $1 and t.created_at > q.since and t.units >= 1000000
      and t.state <> 'failed' and t.units >= q.from_units
      -- What a card has spent goes to the treasury: its owner transferred nothing.
      and not exists (select 1 from card_settlement s where s.decision_id = t.decision_id)
      and (q.below_units is null or t.units < q.below_units) and (q.token is null or t.token = q.token)
    where not (q.outside and exists (select 1 from wallet w where w.address = t.destination))
    group by q.ordinal, t.token`,
}

/**
 * Reads an account's transfers of the last while, in one query. Transfers that are being decided at the same moment are not
 * among them: these rules call for a review, they are no budget.
 */
export async function readPastTransfers(
  database: Connection,
  {
    accountId,
    windows,
    structuring,
    threshold,
    rates,
    now,
  }: {
    accountId: string
    windows: readonly VelocityWindow[]
    /** Null: nobody asks what stayed under the threshold. */
    structuring: Structuring | null
    threshold: TravelRuleThreshold
    rates: RateTable
    now: Date
  },
): Promise<PastTransfers> {
  const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000)
  const bandQuestions = (rule: Structuring): Question[] => {
    const band = bandUnder(threshold.micros, rule)
    return stablecoins.map((token) => ({
      since: ago(rule.seconds),
      token,
      fromUnits: unitsOf(band.from, { token, threshold, rates }),
      belowUnits: unitsOf(band.below, { token, threshold, rates }),
      outside: true,
    }))
  }
  const questions: readonly Question[] = [
    ...windows.map(({ seconds }) => ({
      since: ago(seconds),
      token: null,
      fromUnits: LEAST_JUDGED_UNITS,
      belowUnits: null,
      outside: false,
    })),
    ...(structuring === null ? [] : bandQuestions(structuring)),
  ]
  const rows = await database.call<Row>(statement, [accountId, textOf(questions)])
  const sentWithin = (at: number): Sent => {
    const within = rows.filter(({ ordinal }) => ordinal === at)
    return {
      usdMicros: within.reduce(
        (sum, { token, units }) => sum + usdMicrosAt(rates, { asset: token, units: BigInt(units) }).usdMicros,
        0n,
      ),
      count: within.reduce((sum, { count }) => sum + count, 0),
    }
  }
  return {
    sent: windows.map((_, at) => sentWithin(at)),
    justUnder: rows.reduce((sum, { ordinal, count }) => (ordinal < windows.length ? sum : sum + count), 0),
  }
}

/** Units of a token for an amount in the threshold's currency, rounded down. Stablecoins have as many digits as micros. */
function unitsOf(
  micros: bigint,
  { token, threshold, rates }: { token: Stablecoin; threshold: TravelRuleThreshold; rates: RateTable },
): bigint {
  if (!threshold.isInDollars || stablecoinCurrency[token] === 'USD') return micros
  const { usdMicros } = usdMicrosAt(rates, moneyOf(token, '1'))
  return (micros * 1_000_000n) / usdMicros
}

function textOf(questions: readonly Question[]): string {
  return JSON.stringify(
    questions.map(({ since, token, fromUnits, belowUnits, outside }, ordinal) => ({
      ordinal,
      since,
      token,
      from_units: fromUnits.toString(),
      below_units: belowUnits?.toString() ?? null,
      outside,
    })),
  )
}
