/**
 * The way to money that a swap has sent to another chain. Anybody can mint what was burned, at any later time, so the books never give it
 * up. The job `settle-swaps` asks for the attestation and mints; this records what is still missing.
 */
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import { findSwap, type SwapOrder } from '../../rails/swaps/orders.ts'
import type { Connection } from '../../storage/database.ts'
import { findStep, insertRecourse, type Progress, type Recourse, recordStep } from './store.ts'

export interface BridgeRecourseParts {
  readonly database: Connection
  readonly clock: Clock
}

const DAY_MS = 86_400_000

/** Attestations have no end. */
export const BRIDGE_DAYS = 365

/** A standard one takes some twenty minutes. */
const OVERDUE_MS = 3_600_000

const action = 'bridge_claim'

const missing = {
  attestation: 'The burn is not attested yet; the attestation service is asked again.',
  mint: 'It is attested, and not minted yet; the mint is sent again.',
} as const

/** Goes on with the recourse of a swap as far as it can now. @returns the recourse afterwards. */
export async function advanceSwap(
  { database, clock }: BridgeRecourseParts,
  recourse: Recourse,
): Promise<Recourse> {
  const at = clock()
  const note = (progress: Progress) => recordStep(database, recourse, { progress, at })
  const name = { accountId: recourse.account_id, keyId: null, id: recourse.object_id }
  const swap = await findSwap(database, name)
  if (swap === undefined) throw new Error(`the swap ${recourse.object_id} has no row`)
  if (recourse.route === 'none')
    return note({
      action: 'none',
      outcome: 'failed',
      evidence: { why: 'What was bought has arrived: a swap on the chain is final.' },
      end: { status: 'impossible' },
    })
  if (swap.state === 'confirmed')
    return note({
      action,
      outcome: 'done',
      ...(swap.bridge.mintHash === null ? {} : { evidence: { transaction: swap.bridge.mintHash } }),
      end: { status: 'recovered', isDelivered: true },
    })
  // Its burn is on the chain no more, and what it took is available.
  if (swap.state === 'failed')
    return note({ action: 'refund', outcome: 'done', end: { status: 'recovered', isAllBack: true } })
  if (at >= recourse.deadline)
    return note({
      action,
      outcome: 'failed',
      evidence: { why: 'It was not minted in time. Once it is, it will be booked.' },
      end: { status: 'expired' },
    })
  const awaits = swap.bridge.message === null ? 'attestation' : 'mint'
  if (findStep(recourse, action)?.evidence?.awaits === awaits) return recourse
  return note({
    action,
    outcome: 'waiting',
    evidence: {
      awaits,
      why: missing[awaits],
      ...(swap.transactionHash === null ? {} : { transaction: swap.transactionHash }),
    },
  })
}

/** Opens the recourse of a swap that has been on its way for too long, unless it has one. */
export async function openOverdue(
  { database, clock, newId }: BridgeRecourseParts & { readonly newId: NewId },
  { id, accountId, keyId, decisionId, sell, units, state, createdAt }: SwapOrder,
): Promise<void> {
  const at = clock()
  if (state !== 'bridging' || at.getTime() - createdAt.getTime() < OVERDUE_MS) return
  await insertRecourse(database, {
    ...{ id: newId('rec', at), accountId, keyId, decisionId, objectKind: 'swap', objectId: id },
    ...{ reason: 'not_delivered', note: null, route: action, asset: sell, claimed: units },
    ...{ wasDelivered: false, deadline: new Date(at.getTime() + BRIDGE_DAYS * DAY_MS), at },
  })
}
