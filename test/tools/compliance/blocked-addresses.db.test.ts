import { getAddress } from 'viem'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import get from '../../../tools/compliance/blocked-addresses/get.ts'
import set from '../../../tools/compliance/blocked-addresses/set.ts'
import mfa from '../../../tools/security/mfa.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { computeTotp, readSecret, signInAgain } from '../../people/identity/signed-in.ts'
import { newPayer, outsideAddress, type Payer } from './scene.ts'

const second = '0x000000000000000000000000000000000000dEaD'

onBothEngines('an owner’s blocked addresses', (database) => {
  let services: Services
  let owner: Payer
  const readBlocked = async (caller: Payer = owner) => (await caller.call(get, {})).body
  const refused = { code: 'aml_blocked', members: { screening: { result: 'blocked', lists: ['owner'] } } }
  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    owner = await newPayer(services)
  })

  it('cannot be paid from the next transfer on, by this account alone, in any letter case', async () => {
    expect(await readBlocked()).toEqual({ addresses: [] })
    await owner.send({ amount: '1' })
    const { body } = await owner.call(set, {
      addresses: [second, getAddress(outsideAddress)],
    })
    expect(body).toEqual({ addresses: [second.toLowerCase(), outsideAddress] })
    expect(await readBlocked()).toEqual(body)
    for (const destination of [outsideAddress, second])
      await expect(owner.send({ amount: '1', destination })).rejects.toMatchObject(refused)
    const other = await newPayer(services)
    expect(await readBlocked(other)).toEqual({ addresses: [] })
    await other.send({ amount: '1' })
  })

  it('can be paid again once they are removed', async () => {
    await owner.call(set, { addresses: [outsideAddress, second] })
    await owner.call(set, { addresses: [second] })
    await owner.send({ amount: '1' })
    await expect(owner.send({ amount: '1', destination: second })).rejects.toMatchObject(refused)
  })

  it('are added at once, and removed only with a fresh second factor', async () => {
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stale = await signInAgain(services, owner.accountId)
    await stale.call(set, { addresses: [outsideAddress] })
    await stale.call(set, { addresses: [outsideAddress, second] })
    for (const addresses of [[], [second], [second, `0x${'1'.repeat(40)}`]])
      await expect(stale.call(set, { addresses })).rejects.toMatchObject({ code: 'step_up_required' })
    expect(await readBlocked()).toEqual({ addresses: [second.toLowerCase(), outsideAddress] })
    await owner.call(set, { addresses: [] })
    expect(await readBlocked()).toEqual({ addresses: [] })
  })

  it('lose none when two lists are set concurrently', async () => {
    const lists = Array.from({ length: 5 }, (_, at) => [
      outsideAddress,
      `0x${String(at).repeat(40)}`.replace('0x00', '0xa0'),
    ])
    await Promise.all(lists.map((addresses) => owner.call(set, { addresses })))
    const { addresses } = await readBlocked()
    expect(lists.map((list) => [...list].sort())).toContainEqual(addresses)
  })

  it('must be valid addresses, a thousand at most', async () => {
    const many = Array.from({ length: 1001 }, (_, at) => `0x${String(at).padStart(40, '0')}`)
    for (const addresses of [['0x12'], [second.replace('dEaD', 'DeAd')], many, 'all', undefined])
      await expect(owner.call(set, { addresses })).rejects.toMatchObject({ code: 'invalid_request' })
    await owner.call(set, { addresses: many.slice(1) })
    expect((await readBlocked()).addresses).toHaveLength(1000)
  })
})
