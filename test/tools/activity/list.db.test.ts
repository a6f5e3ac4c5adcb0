import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { openPortfolio } from '../../../src/rails/investing/open-portfolio.ts'
import { readBookedUnits } from '../../../src/rails/wallets/reconcile/booked-balances.ts'
import { freeze, unfreeze } from '../../../src/rails/wallets/reconcile/shortfall.ts'
import { findWallet } from '../../../src/rails/wallets/store.ts'
import list from '../../../tools/activity/list.ts'
import order from '../../../tools/investing/order.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import fx from '../../../tools/x402/fx.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, noon, servicesOn } from '../../kernel/scene.ts'
import { payee, walletScene } from '../wallets/scene.ts'

const page = z.object({
  entries: z.array(
    z.looseObject({
      id: z.string(),
      kind: z.string(),
      direction: z.string(),
      status: z.string(),
      asset: z.string(),
      amount: z.string().nullable(),
      usd: z.string().nullable(),
      agentId: z.string().nullable(),
      object: z.object({ kind: z.string(), id: z.string() }),
      memo: z.string().nullable(),
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
  const listActivity = async (input: object = {}, as: Principal = owner) =>
    page.parse(await scene.call(list, as, input))
  const summarize = ({ entries }: z.output<typeof page>) =>
    entries.map(({ kind, direction, status, amount, asset }) =>
      [kind, direction, status, amount, asset].join(' '),
    )

  it('lists every room, newest first', async () => {
    const { entries, notShown, nextCursor } = await listActivity()
    expect(summarize({ entries, notShown, nextCursor }).slice(0, 4)).toEqual([
      expect.stringMatching(/^order out (pending|completed) \S+ USD$/),
      'purchase out completed 0.01 USDC',
      'transfer out completed 2 USDC',
      'transfer out completed 1 USDC',
    ])
    expect(entries.slice(4).every(({ kind, direction }) => kind === 'deposit' && direction === 'in')).toBe(
      true,
    )
    expect(entries.slice(4).map(({ asset }) => asset)).toContain('USD')
    expect([notShown, nextCursor]).toEqual([[], null])
  })

  it('shows the receiver of a transfer what came in, and the sender’s address', async () => {
    const { entries } = await listActivity({ kind: 'transfer' }, receiver)
    expect(entries).toHaveLength(1)
    expect(entries[0]).toMatchObject({ direction: 'in', amount: '2', status: 'completed', decisionId: null })
    expect(entries[0]?.counterparty?.toLowerCase()).toBe(address.owner)
    expect(entries[0]?.counterparty).not.toBe(address.owner)
  })

  it('is paged without a gap or a repetition', async () => {
    const all = await listActivity()
    const walked: string[] = []
    let cursor: string | null = null
    do {
      const next: z.output<typeof page> = await listActivity({
        limit: '2',
        ...(cursor === null ? {} : { cursor }),
      })
      walked.push(...next.entries.map(({ id }) => id))
      cursor = next.nextCursor
    } while (cursor !== null)
    expect(walked).toEqual(all.entries.map(({ id }) => id))
    expect(new Set(walked).size).toBe(walked.length)
    await expect(listActivity({ cursor: 'bm90aGluZw' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it.each([
    [{ kind: 'purchase' }, 1],
    [{ from: minutes(2).toISOString(), to: minutes(4).toISOString() }, 2],
    [{ kind: 'order', to: minutes(4).toISOString() }, 0],
    [{ kind: 'transfer', direction: 'out' }, 2],
    [{ kind: 'transfer', direction: 'in' }, 0],
    [{ search: payee.slice(2, 12).toUpperCase() }, 1],
    [{ search: 'vt' }, 1],
    [{ search: '%' }, 0],
    [{ agentId: 'key_none' }, 0],
  ])('filters by %j', async (filter, count) => {
    expect((await listActivity(filter)).entries).toHaveLength(count)
  })

  it('shows a key the rooms of its scopes, and only the orders it placed', async () => {
    const wallets = await listActivity({}, buildKeyPrincipal(owner.account, { scopes: ['wallets:read'] }))
    expect(wallets.notShown).toEqual(['bank', 'cards', 'investing'])
    expect(new Set(wallets.entries.map(({ asset }) => asset)).has('USD')).toBe(false)
    const investing = await listActivity({}, buildKeyPrincipal(owner.account, { scopes: ['investing:read'] }))
    expect(summarize(investing)).toEqual([])
    expect((await listActivity({}, buildKeyPrincipal(owner.account))).entries).toEqual([])
  })

  it('has the value in USD, the object and the key of each spend', async () => {
    const { entries } = await listActivity()
    expect(entries.slice(0, 4).map(({ kind, object }) => `${kind} ${object.kind}`)).toEqual([
      'order order',
      'purchase transfer',
      'transfer transfer',
      'transfer transfer',
    ])
    expect(entries[2]?.usd).toMatch(/^(1\.9|2)/)
    expect(entries.slice(0, 4).map(({ agentId }) => agentId)).toEqual([null, null, null, null])
    const { agent, principal } = await scene.addAgent(owner)
    const intent = await scene.requestIntent(principal, { destination: payee, amount: '3' }, at(5))
    const signature = await agent.signHash(intent.hash)
    const paid = { destination: payee, amount: '3', intentId: intent.intentId, signature }
    await scene.call(transfer, principal, paid, { ...at(5), idempotencyKey: 'by-agent' })
    const keyId = principal.kind === 'key' ? principal.key.id : ''
    const { entries: spent } = await listActivity({ agentId: keyId })
    expect(spent).toMatchObject([{ kind: 'transfer', amount: '3', agentId: keyId }])
  })

  it('shows money that the chain lacks, and its return', async () => {
    const place = { accountId: receiver.account.id, token: 'USDC', place: 'base-sepolia' } as const
    const missing = { onChain: 0n, leaving: 0n, units: 1_000_000n, at: minutes(6) }
    await freeze(services, place, missing)
    const { bookings } = await readBookedUnits(services.database, place)
    await unfreeze(services, place, { units: 400_000n, bookings, at: minutes(7) })
    const { entries } = await listActivity({ kind: 'shortfall' }, receiver)
    expect(entries).toMatchObject([
      { direction: 'in', amount: '0.4', object: { kind: 'wallet', id: receiver.account.id } },
      { direction: 'out', amount: '1', usd: '1', counterparty: null },
    ])
    expect((await listActivity({ kind: 'shortfall' })).entries).toEqual([])
  })
})
