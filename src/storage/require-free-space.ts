/** Guards the embedded database against a full disk, which would crash the whole process. */
import { statfsSync } from 'node:fs'
import { timers } from '../core/base/timers.ts'
import { Failure } from '../core/failures/failure.ts'

/** Three log segments; far more than can be written between two checks. */
const MIN_FREE_BYTES = 48 * 1024 * 1024
const CHECK_INTERVAL_MS = 100

/** Creates a check that rejects database use while disk space is low. @throws Failure `provider_unavailable`. */
export function createFreeSpaceCheck(directory: string): () => void {
  let checkedAt = Number.NEGATIVE_INFINITY
  let hasRoom = true
  return () => {
    const now = timers.monotonic()
    if (now - checkedAt >= CHECK_INTERVAL_MS) {
      checkedAt = now
      const { bavail, bsize } = statfsSync(directory)
      hasRoom = bavail * bsize >= MIN_FREE_BYTES
    }
    if (hasRoom) return
    throw new Failure(
      'provider_unavailable',
      'The disk of the database is full; the request had no effect.',
      {
        retryAfter: 5,
        hint: `The operator must free disk space (${MIN_FREE_BYTES / 1024 / 1024} MiB required). Then repeat the request with the same idempotency key.`,
      },
    )
  }
}
