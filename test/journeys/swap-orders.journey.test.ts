/**
 * Swaps that the wallet executes, over HTTP on both engines and on a real chain: what left and what arrived is what the chain shows;
 * a route that lies moves nothing, or brings what was agreed; no approval is left.
 */
import { createPublicClient, getAddress, http, parseAbi } from 'viem'
import { baseSepolia } from 'viem/chains'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { ownContracts, sandboxTokens } from '../../src/chain/rpc/networks.ts'
import { sandboxLiarAddress, sandboxPoolAddress } from '../../src/providers/sandbox-market.ts'
import { overBothEnginesOnNodes } from './both-engines.ts'
import { openOwner, readAddress, tokenBalance } from './keyed-owners.ts'
import { newGuest, newMailbox, type Person, requestJson } from './people.ts'

type Json = Record<string, unknown>
const text = z.string()
const tokenAbi = parseAbi(['function allowance(address owner, address spender) view returns (uint256)'])
const DESK = ownContracts.swapDesk.address

const walletShape = z.looseObject({
  safeAddress: text,
  balances: z.array(z.looseObject({ token: text, amount: text, held: text })),
})

overBothEnginesOnNodes('swaps', (world) => {
  let owner: Person
  let key = ''
  let address = ''

  beforeAll(async () => {
    owner = await newGuest(world.gateway().origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Swapper',
      scopes: ['swaps:quote', 'swaps:execute', 'wallets:read'],
      policy: {
        perTransaction: { max: '200' },
        dailyBudget: { max: '500' },
        categories: { allow: ['swap'] },
        approval: { above: '150' },
      },
    })
    key = String(body.key)
    address = (await readWallet()).safeAddress
  }, 60_000)

  const send = (method: string, path: string, sent?: object, idempotencyKey?: string) =>
    requestJson(world.gateway().origin, method, path, {
      ...(sent === undefined ? {} : { body: sent }),
      headers: {
        authorization: `Bearer ${key}`,
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
    })
  const readWallet = async () => walletShape.parse((await owner.send('GET', '/api/wallets')).body)
  const readBooked = async (symbol: string) => {
    const found = (await readWallet()).balances.find(({ token }) => token === symbol)
    return Math.round((Number(found?.amount ?? 0) + Number(found?.held ?? 0)) * 1e6)
  }
  const readChain = async (symbol: string, holder = address) =>
    Number(await tokenBalance(world.rpcUrl(), symbol, holder))
  const quote = async (route?: string, amountIn = '100') => {
    const { status, body } = await send('POST', '/api/swaps', {
      ...{ fromToken: 'USDC', toToken: 'EURC', fromChain: 'base-sepolia', amountIn },
      ...(route === undefined ? {} : { route }),
    })
    expect({ status, body }).toMatchObject({ status: 200, body: { executable: true } })
    return body
  }
  const execute = (body: Json, idempotencyKey: string = crypto.randomUUID()) =>
    send('POST', '/api/swaps/orders', body, idempotencyKey)
  const readApprovals = async () => {
    const client = createPublicClient({ chain: baseSepolia, transport: http(world.rpcUrl()) })
    const pairs = [address, DESK].flatMap((owned) =>
      [sandboxPoolAddress, sandboxLiarAddress, DESK].flatMap((spender) =>
        Object.values(sandboxTokens).map((token) => [owned, spender, token.address] as const),
      ),
    )
    const units = await Promise.all(
      pairs.map(([owned, spender, token]) =>
        client.readContract({
          address: token,
          abi: tokenAbi,
          functionName: 'allowance',
          args: [getAddress(owned), spender],
        }),
      ),
    )
    return units.reduce((sum, one) => sum + one, 0n)
  }
  const expectBooksEqualChain = async () => {
    for (const symbol of ['USDC', 'EURC', 'USDT', 'PYUSD'])
      expect({ symbol, units: await readBooked(symbol) }).toEqual({ symbol, units: await readChain(symbol) })
    for (const symbol of ['USDC', 'EURC', 'USDT', 'PYUSD']) expect(await readChain(symbol, DESK)).toBe(0)
    expect(await readApprovals()).toBe(0n)
  }

  it('swaps a quote that is executable, and books what the chain shows', async () => {
    const before = { usdc: await readChain('USDC'), eurc: await readChain('EURC') }
    const offered = await quote()
    const idempotencyKey = crypto.randomUUID()
    const { status, body } = await execute({ quoteId: offered.id }, idempotencyKey)
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        status: 'confirmed',
        sent: '100',
        received: offered.amountOut,
        minReceived: offered.amountOutMin,
        sell: { chain: 'base-sepolia', token: 'USDC' },
        buy: { chain: 'base-sepolia', token: 'EURC' },
        route: 'sandbox-pool',
        failure: null,
      },
    })
    expect(await readChain('USDC')).toBe(before.usdc - 100_000_000)
    expect(await readChain('EURC')).toBe(before.eurc + Math.round(Number(offered.amountOut) * 1e6))
    await expectBooksEqualChain()
    expect((await execute({ quoteId: offered.id }, idempotencyKey)).body).toEqual(body)
    expect((await execute({ quoteId: offered.id })).body).toMatchObject({
      code: 'swap_rejected',
      reason: 'quote_used',
    })
    expect((await send('GET', `/api/swaps/orders/${body.swapId}`)).body).toEqual(body)
    const { body: listed } = await send('GET', '/api/swaps/orders')
    expect(listed.orders).toEqual([body])
  })

  it('swaps the legs that it is given, within the slippage and the minimum', async () => {
    const legs = { sell: { token: 'EURC', amount: '10' }, buy: { token: 'USDT' } }
    expect((await execute({ ...legs, minReceived: '11' })).body).toMatchObject({
      code: 'swap_rejected',
      reason: 'below_minimum',
    })
    const { body } = await execute({ ...legs, minReceived: '10.69' })
    expect(body).toMatchObject({ status: 'confirmed', sent: '10', minReceived: '10.69' })
    expect(Number(body.received)).toBeGreaterThan(10.69)
    await expectBooksEqualChain()
  })

  it('refuses an amount with more digits than its token has, whoever names it', async () => {
    const buy = { token: 'PYUSD' }
    const { id: quoteId } = await quote()
    const asked = [
      { sell: { token: 'EURC', amount: '0.01' }, buy, minReceived: '7690.4922695823' },
      { sell: { token: 'EURC', amount: '0.0100001' }, buy },
      { quoteId, minReceived: '0.0000001' },
    ]
    const answers = await Promise.all(asked.map((body) => execute(body)))
    expect(answers.map(({ status, body }) => [status, body.code, body.issues])).toEqual([
      [
        400,
        'invalid_request',
        [{ path: 'minReceived', message: expect.stringContaining('fraction digits') }],
      ],
      [
        400,
        'invalid_request',
        [{ path: 'sell.amount', message: expect.stringContaining('fraction digits') }],
      ],
      [
        400,
        'invalid_request',
        [{ path: 'minReceived', message: expect.stringContaining('fraction digits') }],
      ],
    ])
  })

  it('refuses to swap a token for itself', async () => {
    const sell = { token: 'USDC', amount: '1' }
    const answers = await Promise.all(
      [{ token: 'USDC' }, { token: 'USDC', chain: 'base-sepolia' }, { token: 'USDC', chain: 'base' }].map(
        (buy) => execute({ sell, buy }),
      ),
    )
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(
      answers.map(() => [400, 'invalid_request']),
    )
  })

  it.each(['other-receiver', 'worse-amount', 'takes-everything', 'second-token', 'trades-before'])(
    'moves nothing by the route %s',
    async (route) => {
      const before = await readBooked('USDC')
      const offered = await quote(route, '20')
      const idempotencyKey = crypto.randomUUID()
      const first = await execute({ quoteId: offered.id }, idempotencyKey)
      expect(first).toMatchObject({ status: 422, body: { code: 'swap_rejected', reason: 'route_refused' } })
      expect((await execute({ quoteId: offered.id }, idempotencyKey)).body).toMatchObject({
        code: 'swap_rejected',
        reason: 'route_refused',
      })
      expect(await readBooked('USDC')).toBe(before)
      await expectBooksEqualChain()
      const { body } = await send('GET', '/api/swaps/orders?limit=1')
      expect(body.orders).toMatchObject([{ status: 'failed', sent: '0', received: null, route }])
    },
  )

  it('leaves no approval to a route that hopes for one', async () => {
    const offered = await quote('keeps-approval')
    const { body } = await execute({ quoteId: offered.id })
    expect(body).toMatchObject({ status: 'confirmed', sent: '99.9' })
    expect(Number(body.received)).toBeGreaterThanOrEqual(Number(offered.amountOutMin))
    await expectBooksEqualChain()
  })

  it('counts a swap against the budget, and asks the owner above its threshold', async () => {
    const legs = { sell: { token: 'USDC', amount: '160' }, buy: { token: 'USDT' } }
    const { status, body } = await execute(legs)
    expect({ status, body }).toMatchObject({ status: 403, body: { code: 'approval_required' } })
    const approved = await owner.send('POST', `/api/approvals/${body.approvalId}`, { decision: 'approve' })
    expect(approved.body).toMatchObject({ status: 'approved' })
    const { body: self } = await send('GET', '/api/agents/self')
    expect(
      Number(z.looseObject({ usage: z.looseObject({ used: text }) }).parse(self).usage.used),
    ).toBeCloseTo(100 + 10.705 + 100 + 160, 0)
    expect((await execute({ ...legs, sell: { token: 'USDC', amount: '201' } })).body).toMatchObject({
      code: 'policy_denied',
    })
    await expectBooksEqualChain()
  })

  it('shows a swap once as what left and once as what arrived, in activity and statements', async () => {
    const { body } = await owner.send('GET', '/api/activity?kind=swap&limit=100')
    const entries = z
      .array(
        z.looseObject({
          direction: text,
          status: text,
          asset: text,
          amount: text,
          object: z.looseObject({ id: text }),
        }),
      )
      .parse(body.entries)
    const completed = entries.filter(({ status }) => status === 'completed')
    expect(completed.filter(({ direction }) => direction === 'in')).toHaveLength(4)
    expect(completed.filter(({ direction }) => direction === 'out')).toHaveLength(4)
    const { body: statement } = await owner.send(
      'GET',
      `/api/statements/${world.now().toISOString().slice(0, 7)}`,
    )
    const { balances, movements } = z
      .looseObject({
        balances: z.array(z.looseObject({ asset: text, opening: text, closing: text })),
        movements: z.array(
          z.looseObject({
            asset: text,
            amount: text,
            direction: text,
            object: z.looseObject({ kind: text }).nullable(),
          }),
        ),
      })
      .parse(statement)
    expect(movements.filter(({ object }) => object?.kind === 'swap').length).toBeGreaterThanOrEqual(8)
    for (const { asset, opening, closing } of balances) {
      const moved = movements
        .filter((one) => one.asset === asset)
        .reduce((sum, { direction, amount }) => sum + (direction === 'in' ? 1 : -1) * Number(amount), 0)
      expect(Number(opening) + moved).toBeCloseTo(Number(closing), 6)
    }
  })

  it('swaps from a wallet of an owner’s key: signed by the owner, and by an agent within its allowance', async () => {
    const { origin } = world.gateway()
    const own = await openOwner(origin, world.rpcUrl(), newMailbox('swapper'))
    await own.handOver()
    const holder = await readAddress(own.person)
    const before = { usdc: await readChain('USDC', holder), eurc: await readChain('EURC', holder) }
    const legs = { sell: { token: 'USDC', amount: '30' }, buy: { token: 'EURC' } }
    expect((await own.person.send('POST', '/api/swaps/orders', legs)).body).toMatchObject({
      code: 'signature_rejected',
    })
    const { body: intent } = await own.person.send('POST', '/api/swaps/orders/intent', legs)
    const signature = await own.sign(intent.typedData)
    const { quoteId, intentId } = intent
    const other = await own.person.send('POST', '/api/swaps/orders/intent', {
      ...legs,
      maxSlippageBps: 300,
    })
    expect(
      (
        await own.person.send('POST', '/api/swaps/orders', {
          quoteId: other.body.quoteId,
          intentId,
          signature,
        })
      ).body,
    ).toMatchObject({ code: 'signature_rejected' })
    const { body: swapped } = await own.person.send('POST', '/api/swaps/orders', {
      ...{ quoteId, intentId, signature },
    })
    expect(swapped).toMatchObject({ status: 'confirmed', sent: '30', received: intent.expected })
    expect(await readChain('USDC', holder)).toBe(before.usdc - 30_000_000)
    expect(await readChain('EURC', holder)).toBe(before.eurc + Math.round(Number(swapped.received) * 1e6))

    const { body: created } = await own.person.send('POST', '/api/developer/keys', {
      name: 'Swapper',
      scopes: ['swaps:execute'],
      policy: {
        perTransaction: { max: '2000' },
        dailyBudget: { max: '5000' },
        categories: { allow: ['swap'] },
      },
    })
    const swap = (amount: string) =>
      requestJson(origin, 'POST', '/api/swaps/orders', {
        body: { sell: { token: 'USDC', amount }, buy: { token: 'EURC' } },
        headers: { authorization: `Bearer ${String(created.key)}` },
      })
    expect((await swap('40')).body).toMatchObject({ status: 'confirmed', sent: '40' })
    expect(await readChain('USDC', holder)).toBe(before.usdc - 70_000_000)
    await requestJson(origin, 'POST', '/sandbox/faucet', {
      body: { address: holder, token: 'USDC', amount: '1000' },
    })
    await expect
      .poll(async () => {
        const { status, body } = await swap('970')
        return { status, code: body.code }
      })
      .toEqual({ status: 403, code: 'signature_rejected' })
  })
})
