import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import type { Principal } from '../../../src/base/principal.ts'
import { openPortfolio } from '../../../src/investing/open-portfolio.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { findWallet } from '../../../src/wallets/store.ts'
import list from '../../../tools/activity/list.ts'
import order from '../../../tools/investing/order.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import fx from '../../../tools/x402/fx.ts'
import { onBothEngines } from '../../engines.ts'
import { keyOf, noon, servicesOn } from '../../kernel/scene.ts'
import { payee, walletScene } from '../../tools/wallets/scene.ts'

const page = z.object({
  activity: z.array(
    z.looseObject({
      id: z.string(),
      kind: z.string(),
      direction: z.string(),
      status: z.string(),
      asset: z.string(),
      amount: z.string().nullable(),
      counterparty: z.string().nullable(),
    }),
  ),
  notShown: z.array(z.string()),
  nextCursor: z.string().nullable(),
})

const minutes = (count: number) => new Date(noon.getTime() + count * 60_000)
const at = (count: number) => ({ now: minutes(count), clock: () => minutes(count) })

onBothEngines('the activity of an account', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  let owner: Extract<Principal, { kind: 'session' }>
  let receiver: Extract<Principal, { kind: 'session' }>
  const address: Record<string, string> = {}
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
    owner = await scene.newOwner()
    receiver = await scene.newOwner()
    for (const [name, { account }] of Object.entries({ owner, receiver }))
      address[name] = (await findWallet(database(), account.id)) ?? ''
    await openPortfolio(services, { accountId: owner.account.id, at: noon })
    const pay = (amount: string, destination: string, minute: number) =>
      scene.call(transfer, owner, { destination, amount, signature: 'x' }, at(minute))
    await pay('1', payee, 1)
    await pay('2', address.receiver ?? '', 2)
    await scene.call(fx, owner, { from: 'USD', to: 'EUR', amount: '10' }, { ...at(3), idempotencyKey: 'fx' })
    await scene.call(order, owner, { symbol: 'VTI', side: 'buy', notional: '10' }, at(4))
  }, 60_000)
  const listed = async (input: object = {}, as: Principal = owner) =>
    page.parse(await scene.call(list, as, input))
  const told = ({ activity }: z.output<typeof page>) =>
    activity.map(({ kind, direction, status, amount, asset }) =>
      [kind, direction, status, amount, asset].join(' '),
    )

  it('lists every room, newest first', async () => {
    const { activity, notShown, nextCursor } = await listed()
    expect(told({ activity, notShown, nextCursor }).slice(0, 4)).toEqual([
      expect.stringMatching(/^order out (pending|completed) \S+ USD$/),
      'x402 out completed 0.01 USDC',
      'transfer out completed 2 USDC',
      'transfer out completed 1 USDC',
    ])
    expect(activity.slice(4).every(({ kind, direction }) => kind === 'deposit' && direction === 'in')).toBe(
      true,
    )
    expect(activity.slice(4).map(({ asset }) => asset)).toContain('USD')
    expect([notShown, nextCursor]).toEqual([[], null])
  })

  it('shows the receiver of a transfer what came in, and the sender’s address', async () => {
    const { activity } = await listed({ kind: 'transfer' }, receiver)
    expect(activity).toHaveLength(1)
    expect(activity[0]).toMatchObject({ direction: 'in', amount: '2', status: 'completed', decisionId: null })
    expect(activity[0]?.counterparty?.toLowerCase()).toBe(address.owner)
    expect(activity[0]?.counterparty).not.toBe(address.owner)
  })

  it('is paged without a gap or a repetition', async () => {
    const all = await listed()
    const walked: string[] = []
    let cursor: string | null = null
    do {
      const next: z.output<typeof page> = await listed({ limit: '2', ...(cursor === null ? {} : { cursor }) })
      walked.push(...next.activity.map(({ id }) => id))
      cursor = next.nextCursor
    } while (cursor !== null)
    expect(walked).toEqual(all.activity.map(({ id }) => id))
    expect(new Set(walked).size).toBe(walked.length)
    await expect(listed({ cursor: 'bm90aGluZw' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it.each([
    [{ kind: 'x402' }, 1],
    [{ from: minutes(2).toISOString(), to: minutes(4).toISOString() }, 2],
    [{ kind: 'order', to: minutes(4).toISOString() }, 0],
  ])('filters by %j', async (filter, count) => {
    expect((await listed(filter)).activity).toHaveLength(count)
  })

  it('shows a key the rooms of its scopes, and only the orders it placed', async () => {
    const wallets = await listed({}, keyOf(owner.account, { scopes: ['wallets:read'] }))
    expect(wallets.notShown).toEqual(['bank', 'cards', 'investing'])
    expect(new Set(wallets.activity.map(({ asset }) => asset)).has('USD')).toBe(false)
    const investing = await listed({}, keyOf(owner.account, { scopes: ['investing:read'] }))
    expect(told(investing)).toEqual([])
    expect((await listed({}, keyOf(owner.account))).activity).toEqual([])
  })
})
