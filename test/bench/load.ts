/** A load of autocannon's, and the processor time that it costs. */
import { readdirSync, readFileSync } from 'node:fs'
import autocannon from 'autocannon'

/** Processor time of a process since its start, in milliseconds; Linux counts it in hundredths of a second. */
export function processorMs(pid: number | string | undefined): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user = '0', system = '0'] = fields.split(' ').slice(11, 13)
  return (Number(user) + Number(system)) * 10
}

/** Processor time of the PostgreSQL sessions on a database. */
export function backendsMs(database: string): number {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .reduce((sum, pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return /^postgres: /.test(command) && command.includes(` ${database} `) ? sum + processorMs(pid) : sum
      } catch {
        // It has ended meanwhile.
        return sum
      }
    }, 0)
}

/** Milliseconds with a tenth: autocannon's own percentiles are whole. */
export function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((left, right) => left - right)
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? Number.NaN) * 10) / 10
}

/**
 * Sends that many requests, which must all succeed. The time runs to the last answer: autocannon's own ends with its sampling
 * interval. @param make what is sent; `next` counts the requests from 0.
 */
export async function shoot(
  name: string,
  { origin, connections }: { readonly origin: string; readonly connections: number },
  count: number,
  make: (next: () => number) => Partial<autocannon.Options>,
): Promise<{ readonly times: readonly number[]; readonly seconds: number }> {
  let sent = 0
  const next = () => {
    sent += 1
    return sent - 1
  }
  const options = { url: origin, connections, amount: count, ...make(next) }
  const start = performance.now()
  let end = start
  const times: number[] = []
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const run = autocannon(options, (error, done) => (error === null ? resolve(done) : reject(error)))
    run.on('response', (_client, _status, _bytes, time) => {
      end = performance.now()
      times.push(time)
    })
  })
  if (result['2xx'] !== count)
    throw new Error(`${name}: ${count - result['2xx']} of ${count} requests failed`)
  return { times, seconds: (end - start) / 1_000 }
}
