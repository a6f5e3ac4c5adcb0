/** Travel Rule data of a transfer, submitted by the sender and stored with the transfer. */
import { matchNames } from '../../../policies/aml/match-names.ts'
import {
  judgeTravelRule,
  type TravelRuleThresholds,
  type TravelRuleVerdict,
} from '../../../policies/travel-rule.ts'
import { usdOfMicros } from '../../../policies/usd.ts'
import type { NewId } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Money, type Stablecoin, stablecoinCurrency } from '../../core/money/money.ts'
import { type Rates, valueInUsd } from '../../providers/rates/port.ts'
import type { Sanctions } from '../../providers/sanctions/port.ts'
import type { Database } from '../../storage/database.ts'
import { type Institution, ivmsPayload } from './ivms-payload.ts'
import { findClearedNames } from './listed-parties.ts'
import { insertTravelRule, readCountry } from './store.ts'

export interface TravelRuleDependencies {
  readonly database: Database
  readonly rates: Rates
  readonly sanctions: Sanctions
  readonly settings: {
    readonly aml: { readonly thresholds: TravelRuleThresholds }
    readonly vasp: Institution
    readonly dataKey: Uint8Array
  }
  readonly newId: NewId
  readonly now: Date
  /** True if a Travel Rule network is configured to notify institutions. */
  readonly tellsInstitutions: boolean
}

/** A party as the caller names it. */
export interface PartyByName {
  readonly name: string
  readonly isLegal: boolean
  readonly country: string | null
}

/**
 * A transfer and its parties.
 * @property decisionId decision of a transfer already sent; null: the data is for the next matching transfer.
 */
export interface TravelRuleFacts {
  readonly accountId: string
  readonly money: Money & { readonly asset: Stablecoin }
  readonly destination: string
  readonly chain: string
  readonly wallet: string
  readonly isOwnWallet: boolean
  readonly decisionId: string | null
  readonly originator: PartyByName
  /** True if the identity of the account's holder is verified: the originator is then the holder. */
  readonly isVerified: boolean
  readonly beneficiary: PartyByName
  readonly beneficiaryVasp: Institution | null
}

/** Recorded data. `declined`: a named party may be on a sanctions list. */
export interface RecordedTravelRule {
  readonly id: string
  readonly status: 'required' | 'not_required' | 'declined'
  readonly reason: string
  readonly threshold: { readonly amount: string; readonly currency: 'USD' | 'EUR' }
  readonly payload: Readonly<Record<string, unknown>>
}

/**
 * @throws Failure `kyc_required`, `invalid_request`, `screening_unavailable`, `rates_unavailable`; `conflict` when the transfer
 * already has its data.
 */
export async function recordTravelRule(
  { database, rates, sanctions, settings, newId, now, tellsInstitutions }: TravelRuleDependencies,
  facts: TravelRuleFacts,
): Promise<RecordedTravelRule> {
  const { accountId, money, destination, chain, decisionId } = facts
  const country = await readCountry(database, accountId)
  const payload = await ivmsPayload({
    originator: {
      ...facts.originator,
      country: facts.originator.country ?? country,
      identification: accountId,
      account: facts.wallet,
    },
    beneficiary: { ...facts.beneficiary, identification: destination, account: destination },
    originatingVasp: settings.vasp,
    beneficiaryVasp: facts.beneficiaryVasp,
  })
  const { usdMicros } = await valueInUsd(rates, money, now)
  const value = { currency: stablecoinCurrency[money.asset], micros: money.units, usdMicros }
  const verdict = judgeTravelRule({ country, value, isOwnWallet: facts.isOwnWallet }, settings.aml.thresholds)
  if (verdict.isRequired && !facts.isVerified)
    throw new Failure(
      'kyc_required',
      'The Travel Rule applies, and the identity of the account’s holder is not verified.',
      {
        hint: 'The originator is the verified holder: the owner verifies their identity first, with POST /api/compliance/kyc.',
      },
    )
  const cleared = await findClearedNames({ database, dataKey: settings.dataKey }, { accountId, destination })
  const listed = findListed(facts, (await sanctions.latest()).names, cleared)
  const isListed = listed.length > 0
  const status = isListed ? 'declined' : verdict.isRequired ? 'required' : 'not_required'
  const id = newId('tr', now)
  const isKept = await insertTravelRule(
    { database, dataKey: settings.dataKey },
    {
      id,
      accountId,
      status,
      token: money.asset,
      units: money.units,
      destination,
      chain,
      // Declined data is never attached to a transfer.
      decisionId: isListed ? null : decisionId,
      payload: JSON.stringify(payload),
      // The institution is notified only when the rule requires it.
      institution: status === 'required' && tellsInstitutions ? facts.beneficiaryVasp : null,
    },
    now,
  )
  if (!isKept) throw new Failure('conflict', 'The transfer already has its Travel Rule data.')
  return {
    id,
    status,
    reason: isListed
      ? `The name of ${listed.join(', ')} may be on a sanctions list. Transfers to this destination are blocked until an administrator of the gateway has reviewed it.`
      : explainVerdict(verdict),
    threshold: {
      amount: usdOfMicros(verdict.threshold.micros),
      currency: verdict.threshold.currency,
    },
    payload,
  }
}

/** Lists the named parties that may be on a list. */
function findListed(
  { beneficiary, beneficiaryVasp, originator }: TravelRuleFacts,
  names: readonly string[],
  cleared: ReadonlySet<string>,
): readonly string[] {
  const parties = [
    ['the beneficiary', beneficiary.name],
    ['the beneficiary’s institution', beneficiaryVasp?.name ?? ''],
    ['the originator', originator.name],
  ] as const
  return parties.flatMap(([party, name]) =>
    !cleared.has(name) && matchNames(name, names).length > 0 ? [party] : [],
  )
}

function explainVerdict({ reason, amount, threshold: { micros, currency } }: TravelRuleVerdict): string {
  const [worth, from] = [amount, micros].map((units) => `${usdOfMicros(units)} ${currency}`)
  if (reason === 'own_wallet')
    return 'The destination is a wallet of this gateway; no other institution needs to be notified.'
  if (reason === 'below_threshold') return `${worth} is below the threshold of ${from}.`
  return `${worth} is not below the threshold of ${from}; the data is on record for the transfer.`
}
