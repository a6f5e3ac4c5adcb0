/** Opens recourse and goes on with it, in the call that opens it and in the job, each step by one process at a time. */
import type { NewId } from '../../core/base/ids.ts'
import { timers } from '../../core/base/timers.ts'
import type { PurchaseRecourseParts } from './ask-seller.ts'
import { advancePayout, type BankRecourseParts } from './bank-routes.ts'
import { advanceSwap } from './bridge-route.ts'
import { advanceCard, type CardRecourseParts } from './card-routes.ts'
import type { Payment } from './payments.ts'
import { advancePurchase } from './purchase-routes.ts'
import {
  claimRecourse,
  dueRecourse,
  findAnyRecourse,
  findRecourse,
  insertRecourse,
  type NewRecourse,
  type Recourse,
  recordStep,
  releaseRecourse,
  renewClaim,
} from './store.ts'

export interface RecourseParts
  extends PurchaseRecourseParts,
    BankRecourseParts,
    Omit<CardRecourseParts, 'settings' | 'chains'> {
  readonly newId: NewId
  readonly settings: PurchaseRecourseParts['settings'] & CardRecourseParts['settings']
}

/** A claim outlives its process by this; it is renewed while its process works. */
const BUSY_MS = 10_000
const RENEWAL_MS = 3_000
/** Pauses between two looks: a tenth of its age, within these. */
const PAUSE_MS = { shortest: 2_000, longest: 5 * 60_000 }
const BATCH = 50
const DAY_MS = 86_400_000

type Advance = (parts: RecourseParts, recourse: Recourse) => Promise<Recourse>

/** An on-chain transfer is final, and its payee has promised nothing. */
const endWithoutWay: Advance = ({ database, clock }, recourse) =>
  recordStep(database, recourse, {
    progress: {
      action: 'none',
      outcome: 'failed',
      route: 'none',
      evidence: { why: 'A transfer on the chain is final: only its payee can send it back.' },
      end: { status: 'impossible' },
    },
    at: clock(),
  })

const advances: Readonly<Record<Recourse['object_kind'], Advance>> = {
  purchase: advancePurchase,
  card_transaction: advanceCard,
  payout: advancePayout,
  transfer: endWithoutWay,
  swap: advanceSwap,
}

/** Opens the recourse of a payment, or finds the one that it has, and goes on with it at once. */
export async function openRecourse(
  parts: RecourseParts,
  payment: Payment,
  opened: Pick<NewRecourse, 'accountId' | 'objectId' | 'reason' | 'note'>,
): Promise<Recourse> {
  const { database, newId, clock } = parts
  const at = clock()
  const { days, ...facts } = payment
  const deadline = new Date(at.getTime() + days * DAY_MS)
  await insertRecourse(database, { ...facts, ...opened, id: newId('rec', at), deadline, at })
  const owner = { accountId: opened.accountId, keyId: null }
  const found = await findRecourse(database, owner, {
    objectKind: payment.objectKind,
    objectId: opened.objectId,
  })
  if (found === undefined) throw new Error(`the recourse of ${opened.objectId} has no row`)
  await continueRecourse(parts, found.id)
  return (await findAnyRecourse(database, found.id)) ?? found
}

/** Goes on with an open recourse, unless another process does. Errors leave it to a later round. */
async function continueRecourse(parts: RecourseParts, id: string): Promise<void> {
  const { database, clock, log } = parts
  const at = clock()
  const until = new Date(at.getTime() + BUSY_MS)
  const recourse = await claimRecourse(database, { id, until, at })
  if (recourse === undefined) return
  const endRenewals = timers.every(
    RENEWAL_MS,
    () =>
      void renewClaim(database, { id, until: new Date(clock().getTime() + BUSY_MS) }).catch((err: unknown) =>
        log.warn({ err, recourseId: id }, 'the claim of a recourse could not be renewed'),
      ),
  )
  try {
    await advances[recourse.object_kind](parts, recourse)
  } catch (err) {
    log.warn({ err, recourseId: id }, 'going on with a recourse failed')
  } finally {
    endRenewals()
  }
  const now = clock()
  const age = (now.getTime() - recourse.created_at.getTime()) / 10
  const pauseMs = Math.min(Math.max(age, PAUSE_MS.shortest), PAUSE_MS.longest)
  await releaseRecourse(database, { id, nextAt: new Date(now.getTime() + pauseMs), at: now })
}

/** Runs one round over what is due. @returns how many were. */
export async function continueDue(parts: RecourseParts, signal: AbortSignal): Promise<number> {
  const ids = await dueRecourse(parts.database, { at: parts.clock(), limit: BATCH })
  for (const id of ids) {
    if (signal.aborted) break
    await continueRecourse(parts, id)
  }
  return ids.length
}
