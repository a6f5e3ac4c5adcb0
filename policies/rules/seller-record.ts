import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SellerFacts, SpendFacts } from '../spend.ts'

/** A seller must have delivered what it was paid for; one of which too little is known is allowed, asked about or denied. */
export function sellerRecord({ sellers, approval }: Policy, { seller }: SpendFacts): Violation | undefined {
  const standing = findStanding(sellers, seller)
  if (standing === undefined || standing.is === 'good') return undefined
  const { delivered, of, isEnough } = standing
  const isAllowed =
    !isEnough && sellers?.unknown !== 'deny' && (sellers?.unknown !== 'ask' || approval !== undefined)
  if (isAllowed) return undefined
  return buildViolation('seller_record', {
    limit: String(sellers?.minDelivered?.ratio ?? 0),
    used: String(delivered),
    requested: isEnough ? String(Math.floor((delivered / of) * 1000) / 1000) : null,
  })
}

/** Checks whether the owner wants to be asked about a seller of which too little is known. */
export function isUnknownSeller({ sellers }: Policy, seller: SellerFacts): boolean {
  return sellers?.unknown === 'ask' && findStanding(sellers, seller)?.isEnough === false
}

interface Standing {
  readonly is: 'good' | 'bad' | 'unknown'
  readonly isEnough: boolean
  readonly delivered: number
  readonly of: number
}

function findStanding(
  sellers: Policy['sellers'],
  seller: SellerFacts | null | undefined,
): Standing | undefined {
  const outcomes = seller?.outcomes ?? null
  if (outcomes === null || (sellers?.minDelivered === undefined && sellers?.unknown === undefined))
    return undefined
  const { of, ratio } = sellers.minDelivered ?? { of: 1, ratio: 0 }
  const latest = outcomes.slice(0, of)
  const delivered = latest.replaceAll('0', '').length
  const isEnough = latest.length === of
  return { is: !isEnough ? 'unknown' : delivered / of >= ratio ? 'good' : 'bad', isEnough, delivered, of }
}
