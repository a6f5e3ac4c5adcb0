/** Admission checks of a transfer: chain, wallet and AML. Read-only; runs before anything is reserved. */
import type { AmlLimits } from '../../../../policies/aml/limits.ts'
import {
  type OutflowRule,
  type OutflowWindow,
  outflowRules,
  outflowWindows,
} from '../../../../policies/aml/outflow-windows.ts'
import { screenAddress } from '../../../../policies/aml/screen-address.ts'
import { findWorst, type Screening } from '../../../../policies/aml/screening.ts'
import { bandBelow } from '../../../../policies/aml/structuring.ts'
import { screenTravelRule } from '../../../../policies/aml/travel-rule-missing.ts'
import { judgeTravelRule } from '../../../../policies/travel-rule.ts'
import {
  applyReview,
  REVIEW_HINT,
  type ReviewVerdict,
  reviewSubject,
} from '../../../books/spending/reviews.ts'
import { Failure, type FailureMembers } from '../../../core/failures/failure.ts'
import { stablecoinCurrency, toDecimal } from '../../../core/money/money.ts'
import { type Address, type Chain, tokenAddress } from '../../../providers/chain/port.ts'
import { type Rates, valueInUsd } from '../../../providers/rates/port.ts'
import type { AddressScreening } from '../../../providers/screening/port.ts'
import { lowerCase } from '../store.ts'
import type { TransferParties, TransferRequest } from './load-transfer-facts.ts'

/**
 * Compliance facts of a transfer.
 * @property blocked addresses blocked by the owner, limited to the relevant ones.
 * @property country country of the account; null when unknown.
 * @property travelRuleId Travel Rule data recorded for exactly this transfer.
 */
export interface ComplianceFacts {
  readonly blocked: ReadonlySet<string>
  readonly country: string | null
  readonly travelRuleId: string | null
  /** State of the beneficiary institution when its answer prevents the use of recorded data; null otherwise. */
  readonly institution: 'silent' | 'declined' | null
  /** Travel Rule data of this destination that names a person on a sanctions list; null if none. */
  readonly listedDataId: string | null
}

/**
 * A transfer and what the database knows of it.
 * @property exceeded AML rules that it would break if they applied to it.
 */
interface KnownTransfer extends TransferRequest {
  readonly facts: ComplianceFacts
  readonly review: ReviewVerdict
  readonly exceeded: readonly OutflowRule[]
}

export interface Admission {
  readonly chain: Pick<Chain, 'name' | 'tokens' | 'swapDesk' | 'bridgeDesk' | 'entryPoint'>
  readonly screening: AddressScreening
  readonly rates: Rates
  readonly settings: { readonly aml: AmlLimits }
  readonly now: Date
}

/** A screened transfer and the Travel Rule data it must carry. A transfer that is not cleared must be denied. */
export interface Admitted {
  readonly travelRuleId: string | null
  readonly aml: {
    readonly screening: Screening
    readonly subject: string
    readonly releasedReview: string | null
    readonly windows: readonly OutflowWindow[]
    readonly refusal: (screening: Screening, recorded: Recorded) => Failure
  }
}

/** Members of the recorded denial. */
type Recorded = Pick<FailureMembers, 'decisionId' | 'violations'>

/**
 * Checks whether a transfer may be decided at all, and screens it.
 * @throws Failure `chain_not_supported`, `not_found`, `invalid_request`, `screening_unavailable`,
 * `rates_unavailable`.
 */
export async function admitTransfer(
  admission: Admission,
  request: KnownTransfer & { safeAddress: Address | undefined; parties: TransferParties },
): Promise<Admitted> {
  const { chain } = admission
  if (request.chain !== chain.name)
    throw new Failure(
      'chain_not_supported',
      `This deployment does not transfer on "${request.chain.slice(0, 40)}".`,
      { hint: `Use "${chain.name}".` },
    )
  tokenAddress(chain, request.money.asset)
  const { wallet, isOwnWallet } = request.parties
  if (
    wallet === undefined ||
    (request.safeAddress !== undefined && lowerCase(request.safeAddress) !== wallet.address)
  )
    throw new Failure('not_found', 'The account has no such wallet.', {
      hint: 'Omit safeAddress, or use the one from GET /api/wallets.',
    })
  const destination = lowerCase(request.destination)
  if (destination === wallet.address)
    throw new Failure('invalid_request', 'destination: is the paying wallet itself', {
      issues: [{ path: 'destination', message: 'is the paying wallet itself' }],
    })
  if (isLostAt(chain, destination)) {
    const message = 'is a contract that gives nothing back of what is sent to it'
    throw new Failure('invalid_request', `destination: ${message}`, {
      issues: [{ path: 'destination', message }],
    })
  }
  return screenTransfer(admission, { ...request, destination }, { payer: wallet.address, isOwnWallet })
}

/** Checks whether an address is a token, or a contract behind wallets and swaps. Money that is paid to one is lost to its payer. */
function isLostAt(
  { tokens, swapDesk, bridgeDesk, entryPoint }: Admission['chain'],
  destination: string,
): boolean {
  return [swapDesk, bridgeDesk, entryPoint, ...Object.values(tokens)].some(
    (one) => lowerCase(one) === destination,
  )
}

/** Evaluates the complete AML policy. @throws Failure `screening_unavailable`, `rates_unavailable`. */
async function screenTransfer(
  admission: Admission,
  transfer: KnownTransfer,
  { payer, isOwnWallet }: { payer: string; isOwnWallet: boolean },
): Promise<Admitted> {
  const { screening, rates, settings, now } = admission
  const { keyId, destination, chain, money, facts, review } = transfer
  const subject = reviewSubject({ keyId, category: 'transfer', money, chain, payer, payee: destination })
  const [listed, { usdMicros }] = await Promise.all([
    screening.screen(destination),
    valueInUsd(rates, money, now),
  ])
  const value = { currency: stablecoinCurrency[money.asset], micros: money.units, usdMicros }
  const { country, blocked, travelRuleId } = facts
  const { velocity, structuring, thresholds } = settings.aml
  const { isRequired, threshold, amount } = judgeTravelRule({ country, value, isOwnWallet }, thresholds)
  const windows = outflowWindows(
    { usdMicros, amount, isOwnWallet, isOnRecord: travelRuleId !== null },
    { velocity, structuring, band: bandBelow(threshold.micros, structuring) },
  )
  const found = findWorst([
    listed,
    screenAddress(destination, [{ name: 'owner', addresses: blocked }]),
    ...(facts.listedDataId === null ? [] : [{ result: 'review' as const, lists: ['named_party'] }]),
    ...outflowScreenings(
      isOwnWallet || travelRuleId !== null ? ['velocity'] : outflowRules,
      transfer.exceeded.filter((rule) => windows.some((window) => window.rule === rule && window.isJudged)),
    ),
    screenTravelRule({ isRequired, isOnRecord: travelRuleId !== null }),
  ])
  const reviewed = applyReview(found, review)
  return {
    travelRuleId,
    aml: {
      ...reviewed,
      subject,
      windows: waiveWindows(reviewed.releasedReview === null ? [] : found.lists, windows),
      refusal: (screening, recorded) => buildBlockedFailure(screening, { transfer, facts, recorded }),
    },
  }
}

/** Disables the judgement of windows whose objection an administrator has released; they still count the transfer. */
function waiveWindows(lists: readonly string[], windows: readonly OutflowWindow[]): readonly OutflowWindow[] {
  return windows.map((window) => (lists.includes(window.rule) ? { ...window, isJudged: false } : window))
}

function outflowScreenings(
  judged: readonly OutflowWindow['rule'][],
  exceeded: readonly OutflowWindow['rule'][],
): readonly Screening[] {
  return judged.map((rule) => ({ result: exceeded.includes(rule) ? 'review' : 'clear', lists: [rule] }))
}

/** Introduction of the Travel Rule hint, by the state of the beneficiary's institution. */
const institutionHints = {
  none: '',
  silent:
    'The beneficiary’s institution was just notified: wait ten seconds for its answer, then send the transfer again. Otherwise: ',
  declined:
    'The beneficiary’s institution declined the data recorded for this address, which blocks it until an institution accepts. Ask the beneficiary for the reason, then name their institution as `vasp` in new data: ',
}

function buildBlockedFailure(
  screening: Screening,
  {
    transfer: { destination, chain, money },
    facts: { institution, listedDataId },
    recorded,
  }: { transfer: TransferRequest; facts: ComplianceFacts; recorded: Recorded },
): Failure {
  const { result, lists } = screening
  const isMoney = lists.every((list) => /^(velocity|structuring|travel_rule)$/.test(list))
  const amount = toDecimal(money)
  const body = JSON.stringify({
    amount,
    token: money.asset,
    destination,
    chain,
    beneficiary: { name: '…' },
  })
  const isReviewed =
    result === 'review' && lists.some((list) => list !== 'travel_rule' && list !== 'named_party')
  const needsData = result === 'review' && isMoney && lists.some((list) => list !== 'velocity')
  const hint = needsData
    ? `${lists.includes('travel_rule') ? institutionHints[institution ?? 'none'] : ''}Name the beneficiary: POST /api/compliance/travel-rule ${body}, with legalName instead of name for a company. Then send the transfer again.`
    : result === 'review' && isMoney
      ? 'Recent outflows of the account exceed the limit for transfers without a review. Tell the owner. Do not split it, and do not change its amount.'
      : lists.includes('named_party')
        ? `A party named for this destination may be on a sanctions list (${listedDataId}). Transfers to it are blocked until an administrator of the gateway has reviewed the match: tell the owner to contact the operator.`
        : 'Tell the owner. Do not pay it by another way or to another address of the same payee.'
  return new Failure(
    'aml_blocked',
    `The AML policy ${result === 'blocked' ? 'blocks' : 'requires a review of'} ${isMoney ? `the transfer of ${amount} ${money.asset}` : 'the destination'} (${lists.join(', ')}).`,
    {
      screening,
      ...recorded,
      hint: isReviewed ? `${hint} ${REVIEW_HINT}` : hint,
    },
  )
}
