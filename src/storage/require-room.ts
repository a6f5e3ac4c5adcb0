/** Room on the disk of the embedded database. It does not survive running out: a full disk under its log stops the whole process. */
import { statfsSync } from 'node:fs'
import { Failure } from '../failures/failure.ts'

/** Three segments of its log: what it may write before room is looked for again is far less. */
const LEAST_BYTES = 48 * 1024 * 1024
const LOOK_MS = 100

/** What refuses all use of the database while there is too little room. @throws Failure `provider_unavailable`. */
export function requireFreeSpace(directory: string): () => void {
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasRoom = true
  return () => {
    const now = performance.now()
    if (now - lookedAt >= LOOK_MS) {
      lookedAt = now
      const { bavail, bsize } = statfsSync(directory)
      hasRoom = bavail * bsize >= LEAST_BYTES
    }
    if (hasRoom) return
    throw new Failure('provider_unavailable', 'The disk of the database is full; nothing was done.', {
      retryAfter: 5,
      hint: `The operator makes room: ${LEAST_BYTES / 1024 / 1024} MiB must be free. Repeat the request with the same idempotency key.`,
    })
  }
}
