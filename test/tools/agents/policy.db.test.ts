import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import get from '../../../tools/agents/policy/get.ts'
import set from '../../../tools/agents/policy/set.ts'
import mfa from '../../../tools/security/mfa.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import {
  computeTotp,
  newSignedIn,
  readSecret,
  type SignedIn,
  signInAgain,
} from '../../people/identity/signed-in.ts'

onBothEngines('the owner’s caps over all keys', (database) => {
  let services: Services
  let owner: SignedIn
  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    owner = await newSignedIn(services)
  })

  it('are set for the day, the week and the month, and shown with their usage', async () => {
    const unused = { used: '0', resetsAt: expect.stringMatching(/T00:00:00\.000Z$/) }
    const caps = { dailyBudget: { max: '8' }, weeklyBudget: { max: '20' }, monthlyBudget: { max: '50' } }
    const shown = {
      ...caps,
      ...unused,
      remaining: '8',
      week: { ...unused, remaining: '20' },
      month: { ...unused, remaining: '50' },
      refundsRefill: true,
      approvals: [],
    }
    expect((await owner.call(set, caps)).body).toEqual(shown)
    expect((await owner.call(get, {})).body).toEqual(shown)
  })

  it('stay as they are where a change does not name them', async () => {
    await owner.call(set, { dailyBudget: null, weeklyBudget: { max: '20' } })
    expect((await owner.call(set, { dailyBudget: { max: '5' } })).body).toMatchObject({
      dailyBudget: { max: '5' },
      weeklyBudget: { max: '20' },
      monthlyBudget: null,
    })
  })

  it.each([
    ['raised', { max: '20.01' }],
    ['removed', null],
  ])('need a second factor to be %s, each of them', async (_how, looser) => {
    await owner.call(set, {
      dailyBudget: { max: '20' },
      weeklyBudget: { max: '20' },
      monthlyBudget: { max: '20' },
    })
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stale = await signInAgain(services, owner.accountId)
    for (const change of [
      { dailyBudget: looser },
      { dailyBudget: { max: '20' }, weeklyBudget: looser },
      { dailyBudget: { max: '1' }, monthlyBudget: looser },
    ])
      await expect(stale.call(set, change)).rejects.toMatchObject({ code: 'step_up_required' })
    await expect(
      stale.call(set, { dailyBudget: { max: '19' }, weeklyBudget: { max: '19' } }),
    ).resolves.toBeDefined()
    await expect(owner.call(set, { dailyBudget: looser, weeklyBudget: looser })).resolves.toBeDefined()
  })
})
