/**
 * Prints how many files of the long suite run at a time. Three keep two processors busy: five took as long in all, because each
 * took twice to four times as long. Where the processors are slow or shared, two.
 */
import { createHash } from 'node:crypto'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

const THREADS = 2
const MEGABYTES = 160
const ROUNDS = 5
/** Median of a machine that is neither: about 95 ms. */
const SLOW_MS = 160

if (isMainThread) {
  const rounds = []
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(Math.max(...(await Promise.all(Array.from({ length: THREADS }, measure)))))
  const median = rounds.sort((one, other) => one - other)[Math.floor(ROUNDS / 2)]
  const workers = median > SLOW_MS ? 2 : 3
  console.error(`${MEGABYTES} MB hashed by each of ${THREADS} threads in ${Math.round(median)} ms: ${workers} files at a time`)
  console.log(workers)
} else {
  const begin = performance.now()
  const megabyte = Buffer.alloc(1 << 20)
  for (let times = 0; times < MEGABYTES; times += 1) createHash('sha256').update(megabyte).digest()
  parentPort.postMessage(performance.now() - begin)
}

function measure() {
  return new Promise((resolve, reject) => {
    new Worker(new URL(import.meta.url)).once('message', resolve).once('error', reject)
  })
}
