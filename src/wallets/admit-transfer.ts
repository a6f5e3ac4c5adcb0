/** Whether a transfer may be attempted at all: chain, wallet and AML. Reads only; runs before anything is reserved. */
import type { AmlLimits } from '../../policies/aml/limits.ts'
import { screenAddress } from '../../policies/aml/screen-address.ts'
import { type Screening, worstOf } from '../../policies/aml/screening.ts'
import { bandUnder, isInBand, screenStructuring } from '../../policies/aml/structuring.ts'
import { screenTravelRule } from '../../policies/aml/travel-rule-missing.ts'
import { screenVelocity } from '../../policies/aml/velocity.ts'
import { judgeTravelRule, type TravelRuleVerdict } from '../../policies/travel-rule.ts'
import { Failure } from '../failure.ts'
import { decimalOf, type Money, type Stablecoin, stablecoinCurrency } from '../money.ts'
import type { Address, Chain } from '../providers/chain.ts'
import type { Rates } from '../providers/rates.ts'
import type { AddressScreening } from '../providers/screening.ts'
import type { RateTable } from '../rate-table.ts'
import type { Connection } from '../storage/database.ts'
import { usdMicrosAt } from '../usd-value.ts'
import type { TransferEnds } from './find-ends.ts'
import { LEAST_JUDGED_UNITS, readPastTransfers } from './past-transfers.ts'
import { lowerCase } from './store.ts'

/** What is to be paid, to whom. */
export interface AskedTransfer {
  readonly accountId: string
  readonly destination: Address
  readonly chain: string
  readonly money: Money & { readonly asset: Stablecoin }
}

/**
 * What compliance knows of a transfer. @property blocked what the owner never pays, of the addresses that matter here.
 * @property country of the account; null where it is not known. @property travelRuleId data on record for this very transfer.
 */
export interface ComplianceFacts {
  readonly blocked: ReadonlySet<string>
  readonly country: string | null
  readonly travelRuleId: string | null
  /** What the beneficiary's institution says of data that cannot go with it. */
  readonly institution: 'silent' | 'declined' | null
  /** Data of this destination that names somebody on a sanctions list; null: none does. */
  readonly listedDataId: string | null
}

/** What admission needs. @property complianceFacts is read where compliance keeps it. */
export interface Admission {
  readonly database: Connection
  readonly chain: Pick<Chain, 'name'>
  readonly screening: AddressScreening
  readonly rates: Rates
  readonly settings: { readonly aml: AmlLimits }
  readonly now: Date
  readonly complianceFacts: (transfer: AskedTransfer) => Promise<ComplianceFacts>
}

/** The screening that cleared a transfer, and the Travel Rule data that must go with it. */
export interface Admitted extends Screening {
  readonly travelRuleId: string | null
}

/**
 * Admits a transfer.
 * @throws Failure `chain_not_supported`, `not_found`, `invalid_request`, `aml_blocked`, `screening_unavailable`, `rates_unavailable`.
 */
export async function admitTransfer(
  admission: Admission,
  asked: AskedTransfer & { safeAddress: Address | undefined; ends: TransferEnds },
): Promise<Admitted> {
  const { chain } = admission
  if (asked.chain !== chain.name)
    throw new Failure(
      'chain_not_supported',
      `This deployment does not transfer on "${asked.chain.slice(0, 40)}".`,
      { hint: `Use "${chain.name}".` },
    )
  const { wallet, isOwnWallet } = asked.ends
  if (
    wallet === undefined ||
    (asked.safeAddress !== undefined && lowerCase(asked.safeAddress) !== wallet.address)
  )
    throw new Failure('not_found', 'The account has no such wallet.', {
      hint: 'Leave out safeAddress, or take it from GET /api/wallets.',
    })
  const destination = lowerCase(asked.destination)
  if (destination === wallet.address)
    throw new Failure('invalid_request', 'destination: is the paying wallet itself', {
      issues: [{ path: 'destination', message: 'is the paying wallet itself' }],
    })
  return screenTransfer(admission, { ...asked, destination }, isOwnWallet)
}

/** Asks the whole AML policy. @throws Failure `aml_blocked`, `screening_unavailable`, `rates_unavailable`. */
async function screenTransfer(
  admission: Admission,
  transfer: AskedTransfer,
  isOwnWallet: boolean,
): Promise<Admitted> {
  const { screening, rates, settings, now } = admission
  const { destination, money } = transfer
  const [listed, facts, table] = await Promise.all([
    screening.screen(destination),
    admission.complianceFacts(transfer),
    rates.latest(now),
  ])
  const { usdMicros } = usdMicrosAt(table, money)
  const value = { currency: stablecoinCurrency[money.asset], micros: money.units, usdMicros }
  const { country, blocked, travelRuleId } = facts
  const rule = judgeTravelRule({ country, value, isOwnWallet }, settings.aml.thresholds)
  const { result, lists } = worstOf([
    listed,
    screenAddress(destination, [{ name: 'owner', addresses: blocked }]),
    ...(facts.listedDataId === null ? [] : [{ result: 'review' as const, lists: ['named_party'] }]),
    ...(await screenHistory(admission, transfer, { rule, usdMicros, isOwnWallet, travelRuleId, table })),
    screenTravelRule({ isRequired: rule.isRequired, isOnRecord: travelRuleId !== null }),
  ])
  if (result !== 'clear') throw blockedBy({ result, lists }, transfer, facts)
  return { result, lists, travelRuleId }
}

/** What the last hours say of one more transfer. Dust is let through; so is what is disclosed, or stays with us, as structuring. */
async function screenHistory(
  { database, settings: { aml }, now }: Admission,
  { accountId, money }: AskedTransfer,
  {
    rule,
    usdMicros,
    isOwnWallet,
    travelRuleId,
    table,
  }: {
    rule: TravelRuleVerdict
    usdMicros: bigint
    isOwnWallet: boolean
    travelRuleId: string | null
    table: RateTable
  },
): Promise<Screening[]> {
  if (money.units < LEAST_JUDGED_UNITS) return []
  const { velocity: windows, structuring } = aml
  const { threshold, amount } = rule
  const band = bandUnder(threshold.micros, structuring)
  const isOpen = isOwnWallet || travelRuleId !== null
  const past = await readPastTransfers(database, {
    accountId,
    windows,
    structuring: !isOpen && isInBand(amount, band) ? structuring : null,
    threshold,
    rates: table,
    now,
  })
  return [
    screenVelocity(usdMicros, windows, past.sent),
    ...(isOpen ? [] : [screenStructuring(amount, band, past.justUnder, structuring)]),
  ]
}

/** What was said before of the data that is asked for. */
const told = {
  nobody: '',
  silent:
    'The beneficiary’s institution was told just now: wait ten seconds for its answer, and send the transfer again. Otherwise: ',
  declined:
    'The beneficiary’s institution declined what was said of this address, and that holds until an institution accepts. Ask the beneficiary why, then name their institution as `vasp` of other data: ',
}

function blockedBy(
  screening: Screening,
  { destination, chain, money }: AskedTransfer,
  { institution, listedDataId }: Pick<ComplianceFacts, 'institution' | 'listedDataId'>,
): Failure {
  const { result, lists } = screening
  const isMoney = lists.every((list) => /^(velocity|structuring|travel_rule)$/.test(list))
  const amount = decimalOf(money)
  const body = JSON.stringify({
    amount,
    token: money.asset,
    destination,
    chain,
    beneficiary: { name: '…' },
  })
  const asksForData = isMoney && lists.some((list) => list !== 'velocity')
  return new Failure(
    'aml_blocked',
    `The AML policy ${result === 'blocked' ? 'blocks' : 'wants a review of'} ${isMoney ? `the transfer of ${amount} ${money.asset}` : 'the destination'} (${lists.join(', ')}).`,
    {
      screening,
      hint: asksForData
        ? `${lists.includes('travel_rule') ? told[institution ?? 'nobody'] : ''}Say who is paid: POST /api/compliance/travel-rule ${body}, or with legalName in place of name. Then send the transfer again.`
        : isMoney
          ? 'More has left the account lately than is let through without a review. Send less, or later.'
          : lists.includes('named_party')
            ? `Who is paid there, or whom you named with them, may be on a sanctions list (${listedDataId}). Nothing goes to this destination until an administrator of the gateway has looked at it: ask the operator, or pay another destination.`
            : 'Pay another destination; the account and its limits are not affected.',
    },
  )
}
