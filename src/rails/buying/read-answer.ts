/** The seller's answer to a purchase, as its buyer reads it: at once, or part by part. */
import type { AccountPrincipal } from '../../core/base/principal.ts'
import type { DataKey } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { readPart } from './answer.ts'
import { type KeptAnswer, unsealAnswer } from './delivery.ts'
import { readOwnPurchase } from './store.ts'

interface ReadingParts {
  readonly database: Connection
  readonly dataKey: DataKey
}

/** @property hash hex SHA-256 of the body that was received. */
export interface OwnAnswer extends KeptAnswer {
  readonly hash: string | null
}

/** @throws Failure `not_found` when there is no such purchase, nothing came, or it came over a day ago. */
export async function readOwnAnswer(
  { database, dataKey }: ReadingParts,
  caller: AccountPrincipal,
  id: string,
): Promise<OwnAnswer> {
  const purchase = await readOwnPurchase(database, caller, id)
  const { delivered, delivered_at: deliveredAt, delivered_hash: hash } = purchase
  if (delivered !== null) return { ...unsealAnswer(dataKey, id, delivered), hash }
  if (deliveredAt !== null)
    throw new Failure('not_found', 'The answer to this purchase is no longer kept.', {
      reason: 'expired',
      hint: 'Answers are kept for a day, or until newer ones of the account need their room. Evidence of it is at GET /api/purchases/{id}/evidence.',
    })
  throw new Failure('not_found', 'The seller has not answered this purchase.', {
    reason: 'undelivered',
    hint: 'Repeat the purchase with the same idempotency key: nothing is paid twice.',
  })
}

/** Yields the body in parts, each read when it is asked for. @throws Error when it was deleted meanwhile, or was changed. */
export async function* readAnswerBody(
  parts: ReadingParts,
  id: string,
  { view, stored }: KeptAnswer,
): AsyncGenerator<Uint8Array> {
  if (stored === null) {
    yield view.body === null ? Buffer.from(view.bodyBase64 ?? '', 'base64') : Buffer.from(view.body)
    return
  }
  for (let part = 0; part < stored.parts; part += 1) {
    const bytes = await readPart(parts, id, { receipt: stored.receipt, part })
    if (bytes === undefined) throw new Error(`part ${part} of the answer to ${id} is gone`)
    yield bytes
  }
}
