/** Travel Rule data of a payout to a bank, recorded with every payout. */
import type { NewId } from '../../core/base/ids.ts'
import type { Money } from '../../core/money/money.ts'
import type { Connection } from '../../storage/database.ts'
import { type Institution, ivmsPayload, type Party } from './ivms-payload.ts'
import { insertTravelRule } from './store.ts'

/** @property accountId payer. @property recipientId payee. @property chain a chain's name or `bank`. */
interface PayoutParties {
  readonly accountId: string
  readonly recipientId: string
  readonly money: Money
  readonly chain: string
  readonly decisionId: string
  readonly status: 'required' | 'not_required'
  readonly payload: Readonly<Record<string, unknown>>
  readonly at: Date
}

/** Builds the data of a payout. @throws Failure `invalid_request` when the standard does not accept a name. */
export async function payoutPayload(
  vasp: Institution,
  { originator, beneficiary }: { originator: Party; beneficiary: Party },
): Promise<Readonly<Record<string, unknown>>> {
  return ivmsPayload({ originator, beneficiary, originatingVasp: vasp, beneficiaryVasp: null })
}

/** Stores the data of a payout, sealed, in the transaction of its row. */
export async function recordPayoutParties(
  {
    database,
    settings,
    newId,
  }: { database: Connection; settings: { readonly dataKey: Uint8Array }; newId: NewId },
  { accountId, recipientId, money, chain, decisionId, status, payload, at }: PayoutParties,
): Promise<void> {
  await insertTravelRule(
    { database, dataKey: settings.dataKey },
    {
      id: newId('tr', at),
      accountId,
      status,
      token: money.asset,
      units: money.units,
      destination: recipientId,
      chain,
      decisionId,
      payload: JSON.stringify(payload),
      // Banks exchange the data of their own payments.
      institution: null,
    },
    at,
  )
}
