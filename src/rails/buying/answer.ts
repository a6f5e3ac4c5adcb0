/**
 * Long answers of sellers: stored in parts as they arrive, each sealed for its place, and read back in order. What fits inline
 * has no parts.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../core/base/clock.ts'
import { randomToken } from '../../core/base/ids.ts'
import { type DataKey, seal, unsealBytes } from '../../core/base/seal.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

/** The rest of a longer answer is not received. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024
/** Length of a part, and of the longest answer without parts. */
export const PART_BYTES = 256 * 1024

/** @property receipt of the answer; a purchase may receive several, and keeps the first that is whole. */
export interface StoredParts {
  readonly receipt: string
  readonly parts: number
}

interface StoringParts {
  readonly database: Connection
  readonly clock: Clock
  /** @property answerRoomBytes what an account's answers may take together. */
  readonly settings: { readonly dataKey: DataKey; readonly answerRoomBytes: number }
}

const room: Statement = {
  name: 'answer_make_room',
  text: 'select answer_make_room($1, $2, $3, $4) as has_room',
}
/** Parts for which room is made at a time. */
const PARTS_PER_LOOK = 16
/** Short answers are many: the room is looked at for one in so many of them. */
const SHORT_PER_LOOK = 32

/** Makes room for bytes of an answer, by deleting the account's oldest. @returns false if there is none. */
async function makeRoom({ database, clock, settings }: StoringParts, purchaseId: string, bytes: number) {
  const { answerRoomBytes } = settings
  const given = [purchaseId, bytes, answerRoomBytes, clock()]
  return (await callForRow<{ has_room: boolean }>(database, room, given)).has_room
}

/** True for one in {@link SHORT_PER_LOOK} purchases, by what is random in their ids. */
function isLooked(purchaseId: string): boolean {
  const [byte = 0] = createHash('sha256').update(purchaseId).digest()
  return byte % SHORT_PER_LOOK === 0
}

const PURPOSE = 'purchase answer'

/** The place of a part, which its seal is for: it can be read nowhere else. */
function namePlace(purchaseId: string, { receipt, part }: { receipt: string; part: number }): string {
  return `${purchaseId}.${receipt}.${part}`
}

export interface AnswerWriter {
  /** @returns false if there is no room for more: the answer ends with these bytes. */
  readonly write: (bytes: Uint8Array) => Promise<boolean>
  /** @param mustStore stores also an answer that fits inline. @property hash hex SHA-256 of the body. */
  readonly finish: (
    mustStore: boolean,
  ) => Promise<{ readonly hash: string; readonly stored: StoredParts | null }>
  /** Deletes what was written, of an answer that is not kept. */
  readonly discard: () => Promise<void>
}

/** Receives one answer. At most a part and what the socket delivers at a time are in memory. */
export function createAnswerWriter(
  storing: StoringParts,
  { id: purchaseId, account_id: accountId }: { readonly id: string; readonly account_id: string },
): AnswerWriter {
  const { database, clock, settings } = storing
  const hash = createHash('sha256')
  const receipt = randomToken(RECEIPT_BYTES)
  let waiting: Uint8Array[] = []
  let size = 0
  let parts = 0
  let isFull = false

  const store = async (bytes: Uint8Array) => {
    const id = namePlace(purchaseId, { receipt, part: parts })
    parts += 1
    await database.kysely
      .insertInto('purchase_answer')
      .values({
        id,
        purchase_id: purchaseId,
        account_id: accountId,
        sealed: seal(settings.dataKey, { purpose: PURPOSE, owner: id }, bytes),
        written_at: clock(),
      })
      .execute()
  }

  return {
    write: async (bytes) => {
      hash.update(bytes)
      waiting.push(bytes)
      size += bytes.length
      if (size <= PART_BYTES) return true
      let rest: Uint8Array = Buffer.concat(waiting)
      while (rest.length > PART_BYTES && !isFull) {
        if (parts % PARTS_PER_LOOK === 0)
          isFull = !(await makeRoom(storing, purchaseId, PARTS_PER_LOOK * PART_BYTES))
        if (isFull) break
        await store(rest.subarray(0, PART_BYTES))
        rest = rest.subarray(PART_BYTES)
      }
      waiting = [rest]
      size = rest.length
      return !isFull
    },
    finish: async (mustStore) => {
      const isStored = parts > 0 || mustStore || isFull
      if (!isStored && isLooked(purchaseId)) await makeRoom(storing, purchaseId, SHORT_PER_LOOK * size)
      if (isStored) await store(Buffer.concat(waiting))
      return { hash: hash.digest('hex'), stored: isStored ? { receipt, parts } : null }
    },
    discard: async () => {
      if (parts === 0) return
      const ids = Array.from({ length: parts }, (_, part) => namePlace(purchaseId, { receipt, part }))
      await database.kysely.deleteFrom('purchase_answer').where('id', 'in', ids).execute()
    },
  }
}

const RECEIPT_BYTES = 9

/** Reads one part of an answer. @returns undefined once it was deleted. @throws Error if it was changed. */
export async function readPart(
  { database, dataKey }: { database: Connection; dataKey: DataKey },
  purchaseId: string,
  at: { receipt: string; part: number },
): Promise<Uint8Array | undefined> {
  const id = namePlace(purchaseId, at)
  const row = await database.kysely
    .selectFrom('purchase_answer')
    .select('sealed')
    .where('id', '=', id)
    .executeTakeFirst()
  return row === undefined ? undefined : unsealBytes(dataKey, { purpose: PURPOSE, owner: id }, row.sealed)
}
