/**
 * Keeps the memory of what has passed small. V8 frees buffers with the objects that hold them, which are small and few, so that
 * it waits for 64 MB of passed bytes, and lets old objects grow as a server with a large heap may. Collecting young objects
 * takes less than a millisecond, and all of this small heap some ten.
 */
import type { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const BYTES_PER_COLLECTION = 8 * 1024 * 1024
const REQUESTS_PER_WHOLE_COLLECTION = 1_000

let bytes = 0
let requests = 0
let collect: ((options: { readonly type: 'minor' | 'major' }) => void) | null = null

/** Counts what is read of a stream from now on. */
export function countPassed(stream: Readable): void {
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes < BYTES_PER_COLLECTION) return
    bytes = 0
    collect?.({ type: 'minor' })
  })
}

export function countRequest(): void {
  requests += 1
  if (requests % REQUESTS_PER_WHOLE_COLLECTION === 0) collect?.({ type: 'major' })
}

/** For a process that is the proxy alone: it collects as it counts. */
export function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--expose-gc')
  collect = runInNewContext('gc')
}
