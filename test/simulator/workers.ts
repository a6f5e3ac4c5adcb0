/** Runs simulations in processes of their own, a few at a time. A process ends after {@link RUNS}: databases stay in its memory. */
import { type ChildProcess, fork } from 'node:child_process'
import { bundleWorker, removeBundle } from './bundle.ts'
import type { Result, Run } from './simulate.ts'
import type { Order } from './worker.ts'

const RUNS = 2
const HEAP_MB = 3_000

export interface Told extends Result {
  readonly megabytes: number
}

export interface Workers {
  /** Runs one simulation, as soon as a process is free. @throws Error when the process ends before its answer. */
  run(run: Run, how?: Partial<Omit<Order, 'run'>>): Promise<Told>
  close(): void
}

interface Worker {
  readonly process: ChildProcess
  runs: number
}

/** @param count processes at a time. */
export async function openWorkers(count: number): Promise<Workers> {
  const path = await bundleWorker()
  const idle: Worker[] = []
  const all = new Set<Worker>()
  const waiting: (() => void)[] = []
  let busy = 0
  const start = (): Worker => {
    const child = fork(path, [], { execArgv: [`--max-old-space-size=${HEAP_MB}`, '--no-warnings'] })
    const worker = { process: child, runs: 0 }
    all.add(worker)
    return worker
  }
  const end = (worker: Worker) => {
    all.delete(worker)
    worker.process.disconnect()
  }
  const order = (worker: Worker, message: Order): Promise<Told> =>
    new Promise((resolve, reject) => {
      const { process: child } = worker
      const settle = (work: () => void) => {
        child.off('message', answered).off('exit', lost)
        work()
      }
      const answered = (answer: { result: Told } | { failure: string }) =>
        settle(() => ('result' in answer ? resolve(answer.result) : reject(new Error(answer.failure))))
      const lost = (code: number | null) =>
        settle(() => {
          worker.runs = RUNS
          reject(new Error(`seed ${message.run.seed}: the worker ended with ${code}`))
        })
      child.on('message', answered).on('exit', lost)
      child.send(message)
    })
  return {
    run: async (run, { isTold = false, isLoud = false } = {}) => {
      if (busy >= count) await new Promise<void>((resolve) => waiting.push(resolve))
      busy += 1
      const worker = idle.pop() ?? start()
      try {
        worker.runs += 1
        return await order(worker, { run, isTold, isLoud })
      } finally {
        if (worker.runs < RUNS) idle.push(worker)
        else end(worker)
        busy -= 1
        waiting.shift()?.()
      }
    },
    close: () => {
      for (const worker of all) end(worker)
      removeBundle(path)
    },
  }
}
