/**
 * Virtual time and a seeded order: one task runs at a time, and everything that follows from it without a timer or a port
 * ends before the next one is chosen. Nothing passes while tasks are ready; then time jumps to the next timer.
 */
import { createHash } from 'node:crypto'
import { type Seeded, seededBy } from './seeded.ts'

/** Whose task it is: a gateway, or the world around. A dead one runs no more. @property skew how far its clock is off, in ms. */
export interface Owner {
  readonly name: string
  skew: number
  isDead: boolean
}

interface Task {
  readonly owner: Owner
  readonly label: string
  readonly run: () => void
}

/** A waiting task. @property isOver it was cancelled, or ran. */
interface Timer extends Task {
  readonly at: number
  readonly number: number
  isOver: boolean
}

/** Where virtual time starts. */
export const START = Date.UTC(2027, 0, 4, 9)

const realImmediate = setImmediate

export class Scheduler {
  now = START
  steps = 0
  /** Whose task runs now. */
  current: Owner
  readonly random: Seeded
  readonly bytes: Seeded
  /** Called with each step, for a trace that people read. */
  onStep: ((line: string) => void) | undefined
  readonly #trace = createHash('sha256')
  #ready: Task[] = []
  readonly #timers: Timer[] = []
  #numbers = 0
  #native = 0

  constructor(seed: number, world: Owner) {
    this.random = seededBy(`order ${seed}`)
    this.bytes = seededBy(`bytes ${seed}`)
    this.current = world
  }

  /** Hash of all steps so far: two runs with one hash were the same. */
  get trace(): string {
    return this.#trace.copy().digest('hex').slice(0, 16)
  }

  get hours(): number {
    return (this.now - START) / 3_600_000
  }

  note(text: string): void {
    this.#trace.update(`${this.now} ${text}\n`)
    this.onStep?.(`${this.now - START} ${text}`)
  }

  schedule(owner: Owner, label: string, run: () => void): void {
    if (!owner.isDead) this.#ready.push({ owner, label, run })
  }

  /** @returns what cancels it. */
  after(owner: Owner, ms: number, label: string, run: () => void): () => void {
    const at = this.now + Math.max(0, Number.isFinite(ms) ? ms : 0)
    this.#numbers += 1
    const timer: Timer = { owner, label, run, at, number: this.#numbers, isOver: owner.isDead }
    if (!timer.isOver) insert(this.#timers, timer)
    return () => {
      // One that is due and was not chosen yet does not run either, as in Node.
      if (timer.isOver) this.#ready = this.#ready.filter((task) => task !== timer)
      timer.isOver = true
    }
  }

  sleep(owner: Owner, ms: number, label = 'sleep'): Promise<void> {
    return new Promise((resolve) => {
      this.after(owner, ms, label, resolve)
    })
  }

  /** Waits for work that leaves this thread, or spans turns of the loop, before the next step. */
  track<Result>(work: Promise<Result>): Promise<Result> {
    this.#native += 1
    const end = () => {
      this.#native -= 1
    }
    work.then(end, end)
    return work
  }

  /**
   * A call of a port: another task may run before it, and between its effect and its answer. A crash in between loses the
   * answer alone. Work of another thread is tracked by the caller.
   */
  port<Result>(
    owner: Owner,
    label: string,
    work: () => Promise<Result>,
    { before = 0, after = 0, isAnswerApart = true } = {},
  ): Promise<Result> {
    const later = (ms: number, name: string, run: () => void) => {
      if (ms === 0) this.schedule(owner, name, run)
      else this.after(owner, ms, name, run)
    }
    return new Promise((resolve, reject) => {
      later(before, label, () => {
        const answer = (run: () => void) => (isAnswerApart ? later(after, `${label}.`, run) : run())
        work().then(
          (value) => answer(() => resolve(value)),
          (error) => answer(() => reject(error)),
        )
      })
    })
  }

  /** Forgets all tasks of an owner: it has crashed. */
  drop(owner: Owner): void {
    this.#ready = this.#ready.filter((task) => task.owner !== owner)
    for (const timer of this.#timers) if (timer.owner === owner) timer.isOver = true
  }

  /** Runs one task. @returns false when there is none. */
  async step(): Promise<boolean> {
    do await new Promise((resolve) => realImmediate(resolve))
    while (this.#native > 0)
    for (;;) {
      const [timer] = this.#timers
      if (timer === undefined || !(timer.isOver || timer.at <= this.now || this.#ready.length === 0)) break
      removeFirst(this.#timers)
      if (timer.isOver) continue
      if (timer.at > this.now) this.now = timer.at
      timer.isOver = true
      this.#ready.push(timer)
    }
    if (this.#ready.length === 0) return false
    const [task] = this.#ready.splice(this.random.below(this.#ready.length), 1)
    if (task === undefined) return false
    this.steps += 1
    this.note(`${task.owner.name} ${task.label}`)
    this.current = task.owner
    task.run()
    return true
  }

  /** Runs tasks until a promise of the world has settled. @throws Error when nothing is left to run, or after `hours`. */
  async until<Result>(promise: Promise<Result>, hours = 48): Promise<Result> {
    let end: { value: Result } | { error: unknown } | undefined
    promise.then(
      (value) => {
        end = { value }
      },
      (error: unknown) => {
        end = { error }
      },
    )
    const limit = this.now + hours * 3_600_000
    // An answer may be on its way without a task.
    while (end === undefined)
      if ((!(await this.step()) && end === undefined) || this.now > limit)
        throw new Error(`nothing goes on after ${this.steps} steps`)
    if ('error' in end) throw end.error
    return end.value
  }
}

/** A binary heap by time, then by number. */
function insert(heap: Timer[], timer: Timer): void {
  let at = heap.push(timer) - 1
  while (at > 0) {
    const above = (at - 1) >> 1
    if (!isBefore(timer, heap[above])) break
    swap(heap, at, above)
    at = above
  }
}

function removeFirst(heap: Timer[]): void {
  const last = heap.pop()
  if (heap.length === 0 || last === undefined) return
  heap[0] = last
  let at = 0
  for (;;) {
    let below = 2 * at + 1
    const [left, right] = [heap[below], heap[below + 1]]
    if (left === undefined) return
    if (right !== undefined && isBefore(right, left)) below += 1
    if (!isBefore(heap[below] as Timer, last)) return
    swap(heap, at, below)
    at = below
  }
}

function isBefore(one: Timer, other: Timer | undefined): boolean {
  return other === undefined || one.at < other.at || (one.at === other.at && one.number < other.number)
}

function swap(heap: Timer[], one: number, other: number): void {
  const [first, second] = [heap[one], heap[other]]
  if (first === undefined || second === undefined) return
  heap[one] = second
  heap[other] = first
}
