/** Deposits from a suspicious sender, over real HTTP: held, listed, released or blocked by an administrator. */
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const reviews = z.object({
  reviews: z.array(
    z.looseObject({
      id: z.string(),
      accountId: z.string(),
      direction: z.string(),
      decisionId: z.string().nullable(),
    }),
  ),
})

overBothEngines('screened deposits', {}, (world) => {
  let owner: Person
  let admin: Person
  let accountId: string
  beforeAll(async () => {
    const { origin } = world.gateway()
    owner = await newGuest(origin)
    admin = await signInByEmail(origin, `admin-${Date.now()}@bursar.example`)
    await admin.send('POST', '/sandbox/admin', {})
    accountId = String((await owner.send('POST', '/api/banking', { currency: 'USD' })).body.id)
  })
  const payIn = async (from?: string) =>
    requestJson(world.gateway().origin, 'POST', '/sandbox/deposits', {
      body: { accountId, amount: '10', ...(from === undefined ? {} : { from }) },
    })
  const usdc = async () => {
    const { body } = await owner.send('GET', '/api/wallets')
    const rows = z.array(z.looseObject({ token: z.string(), amount: z.string() })).parse(body.balances)
    return rows.find(({ token }) => token === 'USDC')?.amount
  }
  const listed = async (status = 'open') =>
    reviews
      .parse((await admin.send('GET', `/api/admin/reviews?status=${status}&limit=1`)).body)
      .reviews.filter((review) => review.accountId === owner.accountId)

  it('from anybody else arrive', async () => {
    await payIn()
    await payIn('Ada Lovelace')
    expect(await usdc()).toBe('1020')
  })

  it('from a listed name or a suspicious address wait for an administrator', async () => {
    for (const [from, decision, after] of [
      ['LAZARUS GROUP', 'release', '1030'],
      [`0x${'1'.repeat(36)}8888`, 'block', '1030'],
    ] as const) {
      const before = await usdc()
      expect((await payIn(from)).status).toBe(200)
      expect(await usdc()).toBe(before)
      const [review] = await listed()
      expect(review).toMatchObject({ direction: 'in', decisionId: null, counterparty: from, amount: '10' })
      const path = `/api/admin/reviews/${review?.id}`
      const decided = await admin.send('POST', path, { decision, reason: 'The payer was shown.' })
      expect(decided).toMatchObject({ status: 200, body: { releasedUntil: null } })
      expect(await usdc()).toBe(after)
      expect((await admin.send('POST', path, { decision, reason: 'Again.' })).status).toBe(409)
    }
    expect(await listed()).toEqual([])
  })

  it('from a sanctioned address are blocked at once', async () => {
    await payIn(`0x${'1'.repeat(36)}9999`)
    expect(await usdc()).toBe('1030')
    expect(await listed('blocked')).toMatchObject([{ direction: 'in', decidedBy: null }])
  })
})
