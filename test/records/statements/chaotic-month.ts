/**
 * A month in which one account uses every rail, over HTTP on real chains: money comes in, leaves, fails, is refunded, disputed,
 * exchanged, lost and found. It ends with a swap between chains that is still on its way.
 */
import { createPrivateKey, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { createTestClient, createWalletClient, erc20Abi, http, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { expect, vi } from 'vitest'
import { z } from 'zod'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { signBankingWebhook } from '../../../src/providers/banking/signature.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { signWebhook } from '../../../src/providers/standard-webhooks.ts'
import { askForApproval } from '../../journeys/card-request.ts'
import { readAddress } from '../../journeys/keyed-owners.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { connectSellers, startChannelSeller } from '../../rails/buying/channel-sellers.ts'
import { startUptoSellers } from '../../rails/buying/upto-sellers.ts'
import { newCustomer } from '../../rails/selling/x402/scene.ts'

type Json = Record<string, unknown>

const DAY_MS = 86_400_000
const text = z.string()
/** A contract that refuses every call. */
const REVERTS = '0x60006000fd'

/** @property month `2026-12`; the next one has begun, and what was on its way has arrived. */
export interface ChaoticMonth {
  readonly owner: Person
  readonly month: string
  readonly next: string
  /** Statement of the month while a swap was still on its way. */
  readonly early: Json
  close(): Promise<void>
}

/** @param rpcUrl node of the first chain, `base-sepolia`; the other is `arbitrum-sepolia`. */
export async function liveChaoticMonth(origin: string, rpcUrl: string): Promise<ChaoticMonth> {
  const chain = await connectSellers(rpcUrl)
  const upto = await startUptoSellers(rpcUrl)
  const channels = await startChannelSeller(chain)
  const close = async () => {
    await upto.close()
    await channels.close()
    await chain.close()
  }
  try {
    const calendar = createCalendar(origin)
    const { month, next, goTo } = await calendar.nextMonth()
    await goTo(2)
    // Dividends of the shares that a guest has had for long are paid within seconds.
    const owner = await newGuest(origin)
    const account = await openAccount(origin, owner)
    await payIn(account, chain, rpcUrl)
    await goTo(5)
    await transfer(account, rpcUrl)
    await goTo(8)
    const untilSettled = await buy(account, { upto: upto.origin, channels: channels.origin })
    await goTo(11)
    await payByCard(account)
    await goTo(14)
    await payOut(account)
    await goTo(17)
    await invest(account)
    await goTo(20)
    await swap(account)
    await paySchedule(account, goTo)
    await untilSettled()
    await until(
      async () => (await account.ok('GET', '/api/activity?kind=dividend')).entries,
      (found) => expect(found).not.toEqual([]),
    )
    await goTo(24)
    await loseDeposit(account, rpcUrl)
    await goTo(27)
    const onItsWay = await burn(account)
    await calendar.toNextMonth(3)
    const early = await account.ok('GET', `/api/statements/${month}`)
    await account.ok('POST', '/sandbox/bridge', { mode: 'normal' })
    await untilSwapped(account, onItsWay)
    await transferTo(account, account.stranger, '3.000003')
    return { owner, month, next, early, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Reads until it is as expected. */
async function until<Found>(read: () => Promise<Found>, check: (found: Found) => void): Promise<void> {
  await vi.waitFor(async () => check(await read()), { timeout: 90_000, interval: 200 })
}

interface Account {
  readonly origin: string
  readonly owner: Person
  readonly address: string
  /** Address that nobody here has. */
  readonly stranger: string
  readonly cardId: string
  readonly cardSecret: string
  readonly bankKey: string
  /** As the owner. @returns the answer, which must be 200. */
  ok(method: string, path: string, body?: object): Promise<Json>
  /** As an agent that may buy, pay and swap. */
  agent(method: string, path: string, body?: object): Promise<{ status: number; body: Json }>
}

async function openAccount(origin: string, owner: Person): Promise<Account> {
  const ok = async (method: string, path: string, body?: object) => {
    const answer = await owner.send(method, path, body)
    expect([path, answer.status, answer.status === 200 ? '' : answer.body]).toEqual([path, 200, ''])
    return answer.body
  }
  const secrets = z
    .looseObject({ lithicWebhookSecret: text, bridgeWebhookPrivateKey: text })
    .parse(await ok('GET', '/sandbox/credentials'))
  const { key } = await ok('POST', '/api/developer/keys', {
    name: 'Shopper',
    scopes: ['purchases:pay', 'swaps:execute', 'swaps:quote', 'wallets:read', 'wallets:transfer'],
    policy: {
      perTransaction: { max: '200' },
      dailyBudget: { max: '900' },
      categories: { allow: ['x402', 'swap', 'transfer'] },
    },
  })
  const cards = z.array(z.looseObject({ id: text })).parse((await ok('GET', '/api/cards')).cards)
  return {
    ...{ origin, owner, ok },
    address: await readAddress(owner),
    stranger: privateKeyToAccount(generatePrivateKey()).address,
    cardId: cards[0]?.id ?? '',
    cardSecret: secrets.lithicWebhookSecret,
    bankKey: secrets.bridgeWebhookPrivateKey,
    agent: (method, path, body) =>
      requestJson(origin, method, path, {
        body,
        headers: {
          authorization: `Bearer ${String(key)}`,
          'idempotency-key': randomUUID(),
          'bursar-task': 'groceries',
        },
      }),
  }
}

/** The sandbox's calendar, which the month's days are set by. */
function createCalendar(origin: string) {
  const advance = async (seconds: number) => {
    const { body } = await requestJson(origin, 'POST', '/sandbox/clock', { body: { advance: seconds } })
    return new Date(text.parse(body.now))
  }
  const advanceTo = async (time: number) => {
    const now = await advance(0)
    await advance(Math.max(0, Math.ceil((time - now.getTime()) / 1_000)))
  }
  const nameMonth = (start: number) => new Date(start).toISOString().slice(0, 7)
  let [start, end] = [0, 0]
  return {
    /** The month after this one, from whose second day a test has weeks until its end. */
    nextMonth: async () => {
      const now = await advance(0)
      start = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)
      end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2)
      return {
        month: nameMonth(start),
        next: nameMonth(end),
        goTo: (day: number) => advanceTo(start + (day - 1) * DAY_MS),
      }
    },
    toNextMonth: (day: number) => advanceTo(end + (day - 1) * DAY_MS),
  }
}

/** Faucet, banks in several currencies, cash, a stranger's transfer, a sale by x402 and another account's transfer. */
async function payIn(account: Account, chain: Chain, rpcUrl: string): Promise<void> {
  const { origin, owner, address, ok } = account
  await ok('POST', '/sandbox/faucet', { address, token: 'USDC', amount: '2000' })
  await ok('POST', '/sandbox/faucet', {
    address,
    token: 'USDC',
    amount: '40.000001',
    chain: 'arbitrum-sepolia',
  })
  const [dollars] = z.array(z.looseObject({ id: text })).parse((await ok('GET', '/api/banking')).accounts)
  await ok('POST', '/sandbox/deposits', { accountId: dollars?.id, amount: '250.25', from: 'Ada Lovelace' })
  for (const [currency, amount] of [
    ['EUR', '120.55'],
    ['GBP', '75.10'],
    ['INR', '9999.99'],
  ]) {
    const { id } = await ok('POST', '/api/banking', { currency })
    await ok('POST', '/sandbox/deposits', {
      accountId: id,
      amount,
      reference: `Invoice, "${currency}"; paid`,
    })
  }
  // An account whose deposits stay cash, of which one is taken back by the bank.
  await sendBankEvent(account, { state: 'deactivation', account: dollars?.id })
  const { id: cash } = await ok('POST', '/api/banking', { currency: 'USD', destination: null })
  await ok('POST', '/sandbox/deposits', { accountId: cash, amount: '900000' })
  const taken = { account: cash, amount: '31.07', deposit: randomUUID() }
  await sendBankEvent(account, { state: 'payment_processed', ...taken })
  await sendBankEvent(account, { state: 'returned', ...taken })
  await sendFromOutside(rpcUrl, chain, address, 7_654_321n)
  const request = z
    .looseObject({ x402Url: z.url() })
    .parse(await ok('POST', '/api/requests', { amount: '0.05', memo: 'Invoice 12' }))
  const customer = await newCustomer(chain, 1_000_000n)
  expect((await customer.v2(request.x402Url)).status).toBe(200)
  const friend = await newGuest(origin)
  const gift = { destination: address, amount: '11.5', token: 'EURC', signature: 'sandbox' }
  expect((await friend.send('POST', '/api/wallets/transfer', gift)).status).toBe(200)
  await untilMoved(account, 'USDC', '7.654321')
  await untilMoved(account, 'USDC', '0.05')
  expect(owner.accountId).not.toBe(friend.accountId)
}

/** A contact, another account, an agent's transfer, and some that fail. */
async function transfer(account: Account, rpcUrl: string): Promise<void> {
  const { ok, owner, origin, agent, stranger } = account
  const friend = await newGuest(origin)
  await ok('POST', '/api/contacts', {
    name: 'Łukasz & Söhne; GmbH | 株',
    addresses: [{ address: `0x${'7'.repeat(40)}` }],
  })
  await transferTo(account, 'contact:Łukasz & Söhne; GmbH | 株', '12.345678')
  await transferTo(account, await readAddress(friend), '40')
  const sent = await agent('POST', '/api/wallets/transfer', {
    ...{ destination: stranger, amount: '5.000001', token: 'USDC', signature: 'sandbox' },
  })
  expect([sent.status, sent.body.status]).toEqual([200, 'confirmed'])
  // Neither leaves anything in a statement: one is refused, the other fails on the chain, whose token is paused.
  const refused = { destination: stranger, amount: '250.000001', token: 'PYUSD', signature: 'sandbox' }
  expect((await owner.send('POST', '/api/wallets/transfer', refused)).status).toBe(422)
  const token = sandboxTokens.PYUSD.address
  const code = await rpc(rpcUrl, 'eth_getCode', [token, 'latest'])
  await rpc(rpcUrl, 'anvil_setCode', [token, REVERTS])
  const failed = await owner.send('POST', '/api/wallets/transfer', { ...refused, amount: '3' })
  await rpc(rpcUrl, 'anvil_setCode', [token, code])
  expect(failed.body).toMatchObject({ code: 'provider_unavailable' })
}

async function transferTo({ ok }: Account, destination: string, amount: string): Promise<void> {
  const sent = { destination, amount, token: 'USDC', signature: 'sandbox' }
  expect(await ok('POST', '/api/wallets/transfer', sent)).toMatchObject({ status: 'confirmed' })
}

/**
 * By `exact`, `upto`, MPP and channel; one is refunded, one reclaimed, and one delivers nothing.
 * @returns how to wait for what takes its time: the end of the channel, and money that comes back.
 */
async function buy(
  account: Account,
  sellers: { upto: string; channels: string },
): Promise<() => Promise<void>> {
  const { origin, agent, ok } = account
  const purchase = async (url: string) =>
    (await agent('POST', '/api/purchases', { url, maxAmount: '0.05', purpose: '=1+1, "goods"' })).body
  const shop = (name: string) => purchase(`${origin}/sandbox/sellers/${name}`)
  for (const name of ['weather', 'report', 'headlines', 'metered'])
    expect([name, await shop(name)]).toMatchObject([name, { status: 'delivered' }])
  expect(await purchase(`${sellers.upto}/stock?used=1234`)).toMatchObject({ charged: '0.001234' })
  expect(await purchase(`${sellers.upto}/own/free/1`)).toMatchObject({ charged: '0' })
  for (const name of ['a', 'b', 'c'])
    expect(await purchase(`${sellers.channels}/call/${name}`)).toMatchObject({ status: 'delivered' })
  const opened = z
    .array(z.looseObject({ id: text, origin: text }))
    .parse((await agent('GET', '/api/channels')).body.channels)
    .find((one) => one.origin === sellers.channels)
  await ok('POST', `/api/channels/${opened?.id}/close`, {})
  const recourses: unknown[] = []
  for (const name of ['refunds', 'reclaimable']) {
    const { purchaseId } = await shop(name)
    const object = { kind: 'purchase', id: purchaseId }
    recourses.push((await ok('POST', '/api/recourse', { object, reason: 'not_delivered' })).recourseId)
  }
  expect(await shop('never-delivers')).toMatchObject({ status: 'undelivered' })
  return async () => {
    for (const id of recourses)
      await until(
        () => ok('GET', `/api/recourse/${id}`),
        (found) => expect(found).toMatchObject({ status: 'recovered' }),
      )
    await until(
      async () => (await ok('GET', '/api/channels')).channels,
      (found) => expect(found).toMatchObject([{ status: 'closed' }]),
    )
  }
}

/** Captured in part, refunded in part, in another currency, above its authorization, disputed three times, and declined. */
async function payByCard(account: Account): Promise<void> {
  const { cardId, ok } = account
  await ok('POST', '/api/cards/settings', { cardId, priority: ['USDC', 'EURC', 'USD'] })
  const authorize = (amount: string, more: object = {}) =>
    ok('POST', '/sandbox/authorizations', { cardId, amount, ...more })
  const partial = askForApproval(cardId, 4_000)
  expect(await sendCardMessage(account, partial)).toMatchObject({ result: 'APPROVED' })
  const event = (type: string, amount: number) => ({ token: randomUUID(), type, amount, result: 'APPROVED' })
  const update = (token: string, ...events: object[]) =>
    sendCardMessage(account, {
      ...{ event_type: 'card_transaction.updated', token, card_token: cardId, status: 'SETTLED', events },
    })
  await update(partial.token, event('CLEARING', 2_550))
  await update(partial.token, event('RETURN', -525))
  const tipped = askForApproval(cardId, 1_000)
  await sendCardMessage(account, tipped)
  await update(tipped.token, event('CLEARING', 1_200))
  await update(randomUUID(), event('CLEARING', 333))
  expect(await authorize('17.77', { currency: 'EUR', merchant: 'Bäckerei' })).toMatchObject({ cleared: true })
  const dispute = async (amount: string, ...outcomes: string[]) => {
    await authorize(amount)
    const { transactions } = await ok('GET', `/api/cards/${cardId}/transactions`)
    const [latest] = z.array(z.looseObject({ id: text })).parse(transactions)
    const { recourseId } = await ok('POST', '/api/recourse', {
      object: { kind: 'card_transaction', id: latest?.id },
      reason: 'not_delivered',
    })
    for (const outcome of outcomes) await ok('POST', '/sandbox/recourse', { recourseId, outcome })
    return recourseId
  }
  const status = async (id: unknown) => (await ok('GET', `/api/recourse/${id}`)).status
  const won = await dispute('9.01', 'won')
  const lost = await dispute('9.02', 'lost')
  await until(
    () => status(won),
    (found) => expect(found).toBe('recovered'),
  )
  await until(
    () => status(lost),
    (found) => expect(found).toBe('refused'),
  )
  const taken = await dispute('9.03', 'won')
  await until(
    () => status(taken),
    (found) => expect(found).toBe('recovered'),
  )
  await ok('POST', '/sandbox/recourse', { recourseId: taken, outcome: 'lost' })
  // From the second source once the first is used up, from both.
  await ok('POST', '/api/cards/settings', { cardId, priority: ['PYUSD', 'USDT'] })
  expect(await authorize('300')).toMatchObject({ result: 'APPROVED' })
  await ok('POST', '/api/cards/settings', { cardId, limits: { daily: 500, perPurchase: '60' } })
  expect(await authorize('60.01')).toMatchObject({ result: 'VELOCITY_EXCEEDED' })
}

/** One is paid, one paid and returned, one fails, one is recalled. */
async function payOut(account: Account): Promise<void> {
  const { ok } = account
  const save = async (body: object) => text.parse((await ok('POST', '/api/banking/recipients', body)).id)
  const german = await save({
    ...{ currency: 'EUR', name: 'Emmy Noether', country: 'DE', account: { iban: 'DE89370400440532013000' } },
  })
  const waits = await save({
    ...{ currency: 'USD', name: 'Grace Hopper', country: 'US' },
    account: { routingNumber: '021000021', accountNumber: '123450000' },
  })
  const send = async (recipientId: string, amount: string) =>
    text.parse(
      (await ok('POST', '/api/banking/payouts', { recipientId, amount, reference: 'Rent (May)' })).id,
    )
  const status = async (id: string) => (await ok('GET', `/api/banking/payouts/${id}`)).status
  const paid = await send(german, '100.01')
  const decide = async (id: string, outcome: string) => {
    await until(
      async () => (await account.owner.send('POST', '/sandbox/payouts', { payoutId: id, outcome })).status,
      (found) => expect(found).toBe(200),
    )
    await until(
      () => status(id),
      (found) => expect(found).toBe(outcome),
    )
  }
  const returned = await send(waits, '50.02')
  await decide(returned, 'paid')
  await decide(returned, 'returned')
  await decide(await send(waits, '25.03'), 'failed')
  await decide(await send(waits, '33.04'), 'paid')
  await until(
    () => status(paid),
    (found) => expect(found).toBe('paid'),
  )
}

/** A buy that fills in several seconds and is canceled, a buy, a sell. Dividends come by themselves. */
async function invest({ ok }: Account): Promise<void> {
  const order = (body: object) => ok('POST', '/api/investing/order', body)
  const large = await order({ symbol: 'MSFT', side: 'buy', notional: '400000' })
  expect(large.status).toBe('partially_filled')
  await ok('DELETE', `/api/investing/orders/${large.id}`)
  expect(await order({ symbol: 'VTI', side: 'buy', notional: '100' })).toMatchObject({ status: 'filled' })
  expect(await order({ symbol: 'AAPL', side: 'sell', notional: '33.33' })).toMatchObject({ status: 'filled' })
  expect(
    await order({ symbol: 'SPY', side: 'buy', type: 'limit', limitPrice: '1', notional: '40' }),
  ).toMatchObject({ status: 'accepted' })
}

/** Between tokens, between chains, and one that a lying route gets nothing by. */
async function swap(account: Account): Promise<void> {
  const { agent } = account
  const swapped = await agent('POST', '/api/swaps/orders', {
    sell: { chain: 'base-sepolia', token: 'USDC', amount: '60.000003' },
    buy: { chain: 'base-sepolia', token: 'EURC' },
  })
  expect(swapped.body).toMatchObject({ status: 'confirmed' })
  const { body: lie } = await agent('POST', '/api/swaps', {
    ...{ fromToken: 'USDC', toToken: 'EURC', fromChain: 'base-sepolia', amountIn: '20' },
    route: 'takes-everything',
  })
  expect((await agent('POST', '/api/swaps/orders', { quoteId: lie.id })).status).toBe(422)
  const { body: fast } = await agent('POST', '/api/swaps', {
    ...{ fromToken: 'USDC', toToken: 'USDC', fromChain: 'base-sepolia', toChain: 'arbitrum-sepolia' },
    ...{ amountIn: '50', route: 'cctp-fast' },
  })
  const { body: crossed } = await agent('POST', '/api/swaps/orders', { quoteId: fast.id })
  await untilSwapped(account, crossed.swapId)
}

async function untilSwapped({ agent }: Account, id: unknown): Promise<void> {
  await until(
    async () => (await agent('GET', `/api/swaps/orders/${id}`)).body.status,
    (found) => expect(found).toBe('confirmed'),
  )
}

/** A swap that stays on its way. @returns its id. */
async function burn({ agent, ok }: Account): Promise<unknown> {
  await ok('POST', '/sandbox/bridge', { mode: 'lost' })
  const { body } = await agent('POST', '/api/swaps/orders', {
    sell: { chain: 'base-sepolia', token: 'USDC', amount: '7' },
    buy: { chain: 'arbitrum-sepolia', token: 'USDC' },
  })
  await until(
    async () => (await agent('GET', `/api/swaps/orders/${body.swapId}`)).body.status,
    (found) => expect(found).toBe('bridging'),
  )
  return body.swapId
}

/** Two daily transfers to the contact. */
async function paySchedule(account: Account, goTo: (day: number) => Promise<void>): Promise<void> {
  const { ok, stranger } = account
  const { scheduleId } = await ok('POST', '/api/schedules', {
    operation: 'wallets.transfer',
    input: { destination: stranger, amount: '1.250001', token: 'USDC' },
    every: { unit: 'day' },
    count: 2,
  })
  for (const [index, day] of [22, 23].entries()) {
    await goTo(day)
    await until(
      async () => {
        const { runs } = await ok('GET', `/api/schedules/${scheduleId}`)
        return z
          .array(z.looseObject({ status: text }))
          .parse(runs)
          .filter(({ status }) => status === 'completed').length
      },
      (found) => expect(found).toBe(index + 1),
    )
  }
}

/** A stranger's transfer is booked, and a reorganization of the chain removes it. */
async function loseDeposit(account: Account, rpcUrl: string): Promise<void> {
  const chain = await connectSellers(rpcUrl)
  await rpc(rpcUrl, 'anvil_mine', ['0x28'])
  await pause(3_000)
  await sendFromOutside(rpcUrl, chain, account.address, 9_000_009n)
  await untilMoved(account, 'USDC', '9.000009')
  await pause(2_500)
  await rpc(rpcUrl, 'anvil_reorg', [20, []])
  await chain.close()
  await pause(10_000)
}

async function rpc(url: string, method: string, params: unknown[]): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const answer = z.looseObject({ result: z.unknown() }).parse(await response.json())
  expect(answer).not.toHaveProperty('error')
  return answer.result
}

/** Waits until a statement has a movement of this amount. */
async function untilMoved({ owner }: Account, asset: string, amount: string): Promise<void> {
  await until(
    async () => {
      const { body } = await owner.send('GET', '/api/activity?limit=100')
      return z.array(z.looseObject({ amount: text, asset: text })).parse(body.entries)
    },
    (found) => expect(found).toContainEqual(expect.objectContaining({ asset, amount })),
  )
}

async function sendFromOutside(rpcUrl: string, chain: Chain, to: string, units: bigint): Promise<void> {
  const account = privateKeyToAccount(generatePrivateKey())
  await chain.mint([{ token: 'USDC', to: account.address, units }])
  const transport = http(rpcUrl)
  await createTestClient({ mode: 'anvil', transport }).setBalance({
    address: account.address,
    value: 10n ** 18n,
  })
  const wallet = createWalletClient({ account, chain: baseSepolia, transport }).extend(publicActions)
  const hash = await wallet.writeContract({
    address: sandboxTokens.USDC.address,
    abi: erc20Abi,
    functionName: 'transfer',
    args: [z.templateLiteral(['0x', z.string()]).parse(to), units],
  })
  await wallet.waitForTransactionReceipt({ hash })
}

async function sendBankEvent(
  { origin, bankKey }: Account,
  {
    state,
    account,
    amount = '0',
    deposit = randomUUID(),
  }: { state: string; account: unknown; amount?: string; deposit?: string },
): Promise<void> {
  const body = JSON.stringify({
    ...{ api_version: 'v0', event_id: randomUUID(), event_category: 'virtual_account.activity' },
    ...{ event_type: 'updated.status_transitioned', event_object_id: deposit, event_object_status: state },
    event_object: { virtual_account_id: account, amount },
  })
  const key = createPrivateKey(bankKey)
  const response = await fetch(`${origin}/api/webhooks/bridge`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-webhook-signature': signBankingWebhook(body, { key, at: new Date() }),
    },
    body,
  })
  expect([state, response.status]).toEqual([state, 200])
}

async function sendCardMessage({ origin, cardSecret }: Account, message: object): Promise<unknown> {
  const body = JSON.stringify(message)
  const response = await fetch(`${origin}/api/webhooks/lithic`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...signWebhook({ id: randomUUID(), body, at: new Date() }, cardSecret),
    },
    body,
  })
  expect(response.status).toBe(200)
  return response.json()
}
