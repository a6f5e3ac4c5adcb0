import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import { every } from '../../../src/server/jobs/every.ts'
import { createPace } from '../../../src/server/jobs/pace.ts'

const pace = createPace({ announce: () => {} })

it('continues after a failed round, and leaves no listener behind', async () => {
  const warnings: Error[] = []
  const hear = (warning: Error) => warnings.push(warning)
  process.on('warning', hear)
  let rounds = 0
  const round = async () => {
    rounds += 1
    if (rounds % 2 === 0) throw new Error('a bad round')
    return 0
  }
  const job = every(1, { name: 'test', round, log: silentLog, pace })
  while (rounds < 30) await pause(1)
  await job.stop()
  process.off('warning', hear)
  expect(warnings).toEqual([])
})

it('stops at once between rounds, and waits for a running one', async () => {
  let rounds = 0
  const count = async () => {
    rounds += 1
    return 0
  }
  await every(60_000, { name: 'test', round: count, log: silentLog, pace }).stop()
  expect(rounds).toBe(0)
  let isDone = false
  let started = () => {}
  const underWay = new Promise<void>((resolve) => {
    started = resolve
  })
  const round = async () => {
    started()
    await pause(20)
    isDone = true
    return 0
  }
  const job = every(1, { name: 'test', round, log: silentLog, pace })
  await underWay
  await job.stop()
  expect(isDone).toBe(true)
})
