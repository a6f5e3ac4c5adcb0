/**
 * Calls that share a batch. Calls of the same moment are sent together; a call made while all batches are running joins
 * the next one. No timer is involved.
 */
import { Failure } from '../failures/failure.ts'
import { timers } from './timers.ts'

const MAX_BATCH = 64

/** A batch that fails after this long hung: those who wait behind it would hang as long again. */
const HUNG_MS = 2_000

/**
 * @property concurrent maximum batches at a time.
 * @property isBlocking a batch occupies this thread: calls wait for the turn's other input before one is sent.
 * @property chooseLine calls of one line are sent in order of arrival and never in two batches at once.
 * @property send sends a batch as a whole and returns an answer for each call, in order. A throw means that nothing was
 * done, unless it is a Failure: then the outcome is unknown.
 */
interface Batching<Request, Answer> {
  readonly concurrent: number
  readonly isBlocking?: boolean
  readonly chooseLine: (request: Request) => string
  readonly send: (requests: readonly Request[]) => Promise<readonly Answer[]>
}

interface Waiter<Request, Answer> {
  readonly request: Request
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * @returns a call that joins a batch. It rejects with what its batch threw: a Failure rejects the whole batch, and if the
 * batch hung also the calls that wait in its lines; after any other error the halves of the batch are sent again, until the
 * call that raised is alone.
 */
export function createBatches<Request, Answer>({
  concurrent,
  isBlocking = false,
  chooseLine,
  send,
}: Batching<Request, Answer>) {
  /** Waiting calls by line. A line has an entry while any of its calls is waiting or running. */
  const lines = new Map<string, Waiter<Request, Answer>[]>()
  /** Lines with waiting calls and none running, in order of arrival. */
  const ready = new Set<string>()
  let running = 0
  let isScheduled = false

  const runBatch = async (names: readonly string[], waiters: readonly Waiter<Request, Answer>[]) => {
    running += 1
    const startedAt = timers.monotonic()
    const failure = await answerAll(send, waiters)
    if (failure !== undefined && timers.monotonic() - startedAt > HUNG_MS)
      for (const name of names) for (const { reject } of lines.get(name)?.splice(0) ?? []) reject(failure)
    running -= 1
    for (const name of names)
      if (lines.get(name)?.length === 0) lines.delete(name)
      else ready.add(name)
    schedule()
  }

  const runReady = (): void => {
    isScheduled = false
    while (ready.size > 0 && running < concurrent) {
      const names: string[] = []
      const waiters: Waiter<Request, Answer>[] = []
      for (const name of ready) {
        if (waiters.length === MAX_BATCH) break
        waiters.push(...(lines.get(name)?.splice(0, MAX_BATCH - waiters.length) ?? []))
        names.push(name)
        ready.delete(name)
      }
      void runBatch(names, waiters)
    }
  }

  const schedule = (): void => {
    if (isScheduled) return
    isScheduled = true
    if (isBlocking) timers.soon(runReady)
    else queueMicrotask(runReady)
  }

  return (request: Request): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const name = chooseLine(request)
      const line = lines.get(name)
      const waiter = { request, resolve, reject }
      if (line !== undefined) line.push(waiter)
      else {
        lines.set(name, [waiter])
        ready.add(name)
      }
      schedule()
    })
}

/** Sends a batch and answers each of its calls. Never rejects. @returns the Failure of the whole batch, if any. */
async function answerAll<Request, Answer>(
  send: Batching<Request, Answer>['send'],
  waiters: readonly Waiter<Request, Answer>[],
): Promise<Failure | undefined> {
  let answers: readonly Answer[]
  try {
    answers = await send(waiters.map(({ request }) => request))
    if (answers.length < waiters.length) throw new Failure('internal', 'A batch returned too few answers.')
  } catch (error) {
    if (error instanceof Failure || waiters.length === 1) {
      for (const { reject } of waiters) reject(error)
      return error instanceof Failure ? error : undefined
    }
    const half = Math.ceil(waiters.length / 2)
    const first = await answerAll(send, waiters.slice(0, half))
    return (await answerAll(send, waiters.slice(half))) ?? first
  }
  for (const [index, answer] of answers.entries()) waiters[index]?.resolve(answer)
  return undefined
}
