/** The AML policy on real transfers: recent outflow, the owner's blocked addresses, and unavailable screening. */
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { parseThresholds, parseVelocity } from '../../../../policies/aml/limits.ts'
import { screenAddress } from '../../../../policies/aml/screen-address.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { Failure } from '../../../../src/core/failures/failure.ts'
import type { Services } from '../../../../src/kernel/context.ts'
import { createSanctionsFile } from '../../../../src/providers/sanctions/file.ts'
import { createOfacExcerpt } from '../../../../src/providers/sanctions/ofac-excerpt.ts'
import { createListScreening } from '../../../../src/providers/screening/listed.ts'
import { onBothEngines } from '../../../engines.ts'
import { servicesOn } from '../../../kernel/scene.ts'
import { newPayer, type Payer, reviewFor, withLimits } from '../../../tools/compliance/scene.ts'

onBothEngines('the AML policy on transfers', (database) => {
  let services: Services
  let payer: Payer
  let other: Payer
  const spends = async (owner: Payer) =>
    (
      await database()
        .kysely.selectFrom('decision')
        .select('id')
        .where('account_id', '=', owner.accountId)
        .execute()
    ).length
  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    ;[payer, other] = await Promise.all([newPayer(services), newPayer(services)])
  })

  it('clears an ordinary transfer, and names the lists', async () => {
    const { body } = await payer.send({ amount: '2' })
    expect(body.screening).toEqual({
      result: 'clear',
      lists: ['sandbox', 'owner', 'velocity', 'structuring', 'travel_rule'],
    })
  })

  it('denies a sanctioned destination, on record and before the balance is checked', async () => {
    const listed = { ...services, screening: createListScreening(createOfacExcerpt(), screenAddress) }
    const person = await newPayer(listed)
    const destination = '0x098B716B8Aaf21512996dC57EB0615e2383E2f96'
    await expect(person.send({ amount: '5000', destination })).rejects.toMatchObject({
      code: 'aml_blocked',
      members: { screening: { result: 'blocked', lists: ['ofac'] } },
    })
    expect(await spends(person)).toBe(1)
  })

  it('sends nothing while the list is unavailable', async () => {
    const sanctions = createSanctionsFile({ path: '/nonexistent/list.json', log: silentLog })
    const person = await newPayer({ ...services, screening: createListScreening(sanctions, screenAddress) })
    await expect(person.send({ amount: '1' })).rejects.toMatchObject({ code: 'screening_unavailable' })
    expect(await spends(person)).toBe(0)
  })

  it('sends dollars without rates, and nothing whose value is unknown for lack of them', async () => {
    const rates = { latest: () => Promise.reject(new Failure('rates_unavailable', 'No rates.')) }
    const person = await newPayer({ ...services, rates })
    await expect(person.send({ amount: '1', token: 'EURC' })).rejects.toMatchObject({
      code: 'rates_unavailable',
    })
    expect((await person.send({ amount: '1' })).body).toMatchObject({ status: 'confirmed' })
    expect(await spends(person)).toBe(1)
  })

  it('requires a review for a transfer that raises the day above 50,000 USD, in any token', async () => {
    const free = withLimits(services, { thresholds: parseThresholds('default:1000000') ?? new Map() })
    const person = await newPayer(free)
    await person.send({ amount: '20000' })
    await person.send({ amount: '20000', token: 'USDT' })
    // EURC: 1.0705 USD each.
    await expect(person.send({ amount: '9342', token: 'EURC' })).rejects.toMatchObject(reviewFor('velocity'))
    await person.send({ amount: '9341', token: 'EURC' })
    await expect(person.send({ amount: '2' })).rejects.toMatchObject(reviewFor('velocity'))
    // Other accounts are not affected.
    await other.send({ amount: '2' })
    // The day's slots cover 24 hours, and the last one still counts.
    const age = (slots: bigint) =>
      database()
        .kysely.updateTable('outflow_slot')
        .set(({ eb }) => ({ slot: eb('slot', '-', slots) }))
        .where('account_id', '=', person.accountId)
        .execute()
    await age(24n)
    await expect(person.send({ amount: '2' })).rejects.toMatchObject(reviewFor('velocity'))
    await age(1n)
    await person.send({ amount: '2' })
  })

  it('requires a review for an accumulation of small amounts', async () => {
    const velocity = parseVelocity('2/600') ?? []
    const person = await newPayer(withLimits(services, { velocity }))
    await person.send({ amount: '0.999999' })
    await person.send({ amount: '0.999999' })
    await expect(person.send({ amount: '0.999999' })).rejects.toMatchObject(reviewFor('velocity'))
    await person.send({ amount: '0.000002' })
    await expect(person.send({ amount: '0.000001' })).rejects.toMatchObject(reviewFor('velocity'))
  })

  it('requires a review for a burst', async () => {
    const velocity = parseVelocity('10/600/3') ?? []
    const person = await newPayer(withLimits(services, { velocity }))
    await person.send({ amount: '6' })
    await person.send({ amount: '6' })
    await expect(person.send({ amount: '1' })).rejects.toMatchObject(reviewFor('velocity'))
  })

  it('requires a review for the third transfer just under the threshold, unless its beneficiary is recorded', async () => {
    await payer.send({ amount: '900' })
    await payer.send({ amount: '850', token: 'USDT' })
    await payer.send({ amount: '799.999999' })
    await expect(payer.send({ amount: '950' })).rejects.toMatchObject(reviewFor('structuring'))
    await payer.send({ amount: '700' })
    await payer.disclose({ amount: '950' })
    await payer.send({ amount: '950' })
  })

  it('does not count transfers within the gateway as structuring', async () => {
    for (const amount of ['900', '901', '902', '903'])
      await payer.send({ amount, destination: other.address })
    await expect(payer.send({ amount: '904' })).resolves.toBeDefined()
  })

  it('converts euro transfers for a threshold in dollars', async () => {
    await database()
      .kysely.updateTable('account')
      .set({ country: 'US' })
      .where('id', '=', payer.accountId)
      .execute()
    // 2,400 to 3,000 USD are about 2,242 to 2,803 EURC.
    for (const amount of ['2250', '2300']) await payer.send({ amount, token: 'EURC' })
    await payer.send({ amount: '2200', token: 'EURC' })
    await expect(payer.send({ amount: '2800', token: 'EURC' })).rejects.toMatchObject(
      reviewFor('structuring'),
    )
    await expect(payer.send({ amount: '2810', token: 'EURC' })).rejects.toMatchObject(
      reviewFor('travel_rule'),
    )
  })
})
