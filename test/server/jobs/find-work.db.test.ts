/** The shared read of the jobs, on both engines. */
import { readFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { installTimers, systemTimers } from '../../../src/core/base/timers.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { sendTransfer } from '../../../src/rails/wallets/transfers/send-transfer.ts'
import { claimingJobs, createHasWork, createShouldClaim } from '../../../src/server/jobs/find-work.ts'
import { settlePending } from '../../../src/server/jobs/settle-pending.ts'
import type { Database } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { openFundedAccount, reserveOrder, sendingDependencies } from '../../rails/wallets/scene.ts'

const later = () => new Date(systemClock().getTime() + 60_000)
const running = new AbortController().signal
const onCalendar = (at: Date) => at

it('names every job that leaves rounds out, and no other', () => {
  const text = readFileSync('src/storage/sql/functions/kernel/jobs_with_work.sql', 'utf8')
  const named = [...text.matchAll(/then '([a-z-]+)' end/g)].map(([, name]) => name)
  expect(named.sort()).toEqual([...claimingJobs].sort())
})

it('leaves a claim out without work for less than a minute', async () => {
  const time = { now: 0, isWork: false }
  const shouldClaim = createShouldClaim(async () => time.isWork)
  installTimers({ ...systemTimers, monotonic: () => time.now })
  try {
    expect(await shouldClaim()).toBe(true)
    time.now = 30_000
    expect(await shouldClaim()).toBe(false)
    time.isWork = true
    expect(await shouldClaim()).toBe(true)
    time.isWork = false
    time.now = 60_000
    expect(await shouldClaim()).toBe(false)
    time.now = 90_000
    expect(await shouldClaim()).toBe(true)
  } finally {
    installTimers(systemTimers)
  }
})

onBothEngines('the shared read of the jobs', (database) => {
  let reads = 0
  const counting = (): Pick<Database, 'call'> => ({
    call: (statement, parameters) => {
      reads += 1
      return database().call(statement, parameters)
    },
  })
  const hasWork = (job: string) =>
    createHasWork({ database: { ...database(), ...counting() }, clock: later, onCalendar })(job)
  let chain: Chain
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
  })

  it('names no job when there is nothing to do, in one read for all that ask together', async () => {
    const ask = createHasWork({ database: { ...database(), ...counting() }, clock: later, onCalendar })
    // The first one is planned, which takes longer than an answer is shared on a busy machine.
    await ask('settle-pending')
    await systemTimers.sleep(500)
    reads = 0
    const found = await Promise.all([...claimingJobs].map((job) => ask(job)))
    expect(found).toEqual([...claimingJobs].map(() => false))
    expect(reads).toBe(1)
    await ask('settle-pending')
    expect(reads).toBe(1)
    await systemTimers.sleep(500)
    await ask('settle-pending')
    expect(reads).toBe(2)
  })

  it('names the transfers that were left open, until they are finished', async () => {
    const sending = sendingDependencies(database(), chain)
    const { accountId } = await openFundedAccount(sending)
    const order = await reserveOrder(sending, { accountId, units: 7n })
    // A process ended between the reservation and its transfer.
    expect(await hasWork('settle-pending')).toBe(true)
    const deaf: Chain = { ...chain, submit: () => Promise.reject(new Error('there is no connection')) }
    await expect(sendTransfer({ ...sending, chain: deaf }, order)).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    expect(await hasWork('settle-pending')).toBe(true)
    expect(await hasWork('settle-purchases')).toBe(false)
    await settlePending({ ...sending, clock: later }, running)
    expect(await hasWork('settle-pending')).toBe(false)
  })
})
