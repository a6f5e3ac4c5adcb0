/**
 * The ways to the money of a purchase in escrow: its seller is asked to give it back (`void`), and what it has not captured by its deadline
 * is taken by our own transaction (`reclaim`). What the escrow shows in the end is booked, whatever either side said.
 */
import { bookOutcome } from '../../rails/buying/pay-purchase.ts'
import { findRefundUrl } from '../../rails/buying/request-refund.ts'
import { findReclaimableAt, isReclaimable, reclaimEscrow } from '../../rails/buying/return-escrow.ts'
import { chargedUnits, findPurchase, type Purchase } from '../../rails/buying/store.ts'
import { MAX_REQUESTS, type PurchaseRecourseParts, sendRefundRequest } from './ask-seller.ts'
import { findStep, type Progress, parseSteps, type Recourse, recordStep } from './store.ts'

/** Reads what has become of a purchase by the chain. @property isEscrowed its money is in escrow. */
export async function readEscrowed(
  parts: PurchaseRecourseParts,
  purchase: Purchase,
): Promise<{ readonly purchase: Purchase; readonly isEscrowed: boolean }> {
  if (purchase.scheme !== 'auth-capture' || purchase.state !== 'signed')
    return { purchase, isEscrowed: false }
  const status = await bookOutcome(parts, purchase, null)
  const after = await findPurchase(parts.database, { id: purchase.id })
  return { purchase: after ?? purchase, isEscrowed: status === 'escrowed' && after?.state === 'signed' }
}

/** The way by which money comes back from escrow, if one was begun. */
function findEscrowAction(recourse: Recourse): 'void' | 'reclaim' | undefined {
  return parseSteps(recourse)
    .map(({ action }) => action)
    .findLast((action) => action === 'void' || action === 'reclaim')
}

/**
 * The way by which money has come back from escrow, if one was begun: what a silent seller still has when it can capture no more is taken by
 * our own transaction, whichever job sends it first.
 */
export async function nameEscrowReturn(
  parts: Pick<PurchaseRecourseParts, 'chain' | 'clock'>,
  recourse: Recourse,
  purchase: Purchase,
): Promise<'void' | 'reclaim' | undefined> {
  const begun = findEscrowAction(recourse)
  return begun !== undefined && (await isReclaimable(parts, purchase)) ? 'reclaim' : begun
}

/** Goes on with what is in escrow as far as it can now. @returns the recourse afterwards. */
export async function returnFromEscrow(
  parts: PurchaseRecourseParts,
  given: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  const { clock } = parts
  const note = (recourse: Recourse, progress: Progress) =>
    recordStep(parts.database, recourse, { progress, at: clock() })
  const asked = await askForVoid(parts, given, { purchase, note })
  if (asked.status !== 'open') return asked
  const begun =
    findEscrowAction(asked) === 'reclaim' || (isAwaited(asked) && !(await isReclaimable(parts, purchase)))
      ? asked
      : await note(asked, {
          action: 'reclaim',
          outcome: 'waiting',
          route: 'reclaim',
          evidence: { after: findReclaimableAt(purchase).toISOString() },
        })
  await reclaimEscrow(parts, purchase)
  if (clock() < begun.deadline) return begun
  return note(begun, {
    action: 'reclaim',
    outcome: 'failed',
    evidence: { why: 'The escrow did not give the money back in time.' },
    end: { status: 'expired' },
  })
}

/** True while the seller has promised to give it back. */
function isAwaited(recourse: Recourse): boolean {
  return findStep(recourse, 'void')?.outcome === 'waiting'
}

type Note = (recourse: Recourse, progress: Progress) => Promise<Recourse>

/** Asks the seller to give the money back until it has the request, where its terms say that it takes such requests. */
async function askForVoid(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  { purchase, note }: { readonly purchase: Purchase; readonly note: Note },
): Promise<Recourse> {
  const action = 'void'
  const steps = parseSteps(recourse).filter((step) => step.action === action)
  const isOver =
    steps.some(({ outcome }) => outcome === 'waiting' || outcome === 'refused') ||
    steps.length >= MAX_REQUESTS ||
    parts.clock() >= findReclaimableAt(purchase)
  if (isOver) return recourse
  const url = findRefundUrl(purchase, { loopback: parts.settings.mode === 'sandbox' })
  if (url === null)
    return steps.length > 0
      ? recourse
      : note(recourse, {
          action,
          outcome: 'failed',
          route: action,
          evidence: { why: 'The seller declares no way to ask for the money.' },
        })
  const { outcome, said } = await sendRefundRequest(parts, recourse, {
    ...{ purchase, url },
    // Once it has captured, a refund is another request.
    name: `${recourse.id}-void`,
  })
  const outcomes = { accepted: 'waiting', refused: 'refused', unclear: 'failed' } as const
  return note(recourse, {
    action,
    outcome: outcomes[outcome],
    route: action,
    evidence: { url: url.href, answer: said },
  })
}

/** Records what a purchase that was in escrow has ended with: what came back of it, and what its seller has captured. */
export async function noteEscrowEnd(
  parts: Pick<PurchaseRecourseParts, 'database' | 'chain' | 'clock'>,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  if (purchase.state !== 'settled') return recourse
  const isNoted = parseSteps(recourse).some(
    ({ action, outcome }) =>
      (action === 'void' || action === 'reclaim') && (outcome === 'done' || outcome === 'raced'),
  )
  if (isNoted) return recourse
  const action = await nameEscrowReturn(parts, recourse, purchase)
  if (action === undefined) return recourse
  const charged = chargedUnits(purchase)
  const back = recourse.claimed > charged ? recourse.claimed - charged : 0n
  return recordStep(parts.database, recourse, {
    progress: {
      action,
      route: action,
      outcome: back > 0n ? 'done' : 'raced',
      evidence: { transaction: purchase.transaction_hash ?? '', why: 'The seller has captured.' },
      ...(back > recourse.recovered ? { recovered: back } : {}),
    },
    at: parts.clock(),
  })
}
