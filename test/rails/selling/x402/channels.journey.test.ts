/** The quote sold by payment channel, to a stock client: one deposit, then an answer for each voucher without a transaction. */
import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { BatchSettlementEvmScheme } from '@x402/evm/batch-settlement/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSystemBalance } from '../../../../src/books/ledger/balances.ts'
import { startAnvilChain } from '../../../../src/chain/node/anvil.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import { channelsAddress } from '../../../../src/providers/payment-channels.ts'
import { collectChannels } from '../../../../src/rails/selling/payments/collect-channels.ts'
import { resolvePayment } from '../../../../src/rails/selling/payments/resolve-payment.ts'
import { findPayment } from '../../../../src/rails/selling/payments/store.ts'
import type { Database } from '../../../../src/storage/database.ts'
import { openPglite } from '../../../../src/storage/pglite.ts'
import { dataKey, openShop, payTo, type Shop, spyingFetch } from './scene.ts'
import { hasAnvil } from './world.ts'

const chains: readonly (readonly [string, () => Promise<Chain>])[] = [
  ...(hasAnvil()
    ? [
        [
          'anvil',
          () => startAnvilChain({ name: 'base-sepolia', log: silentLog, binary: process.env.ANVIL_BIN }),
        ] as const,
      ]
    : []),
  ['the simulated chain', () => createSimulatedChain({ clock: systemClock, log: silentLog })],
]
const HOUR_MS = 3_600_000

describe.each(chains)('the paywall by channel on %s', (_name, open) => {
  let chain: Chain
  let database: Database
  let shop: Shop
  beforeAll(async () => {
    chain = await open()
    database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
    await database.migrate()
    shop = await openShop(chain, { database })
    shop.deliver = async () => ({ quoteId: 'quote_1', from: 'USD', to: 'EUR', amount: '100', result: '92.5' })
  }, 60_000)
  afterAll(async () => {
    await shop.close()
    await database.close()
    await chain.close()
  })

  const later = (ms: number) => ({
    chain,
    database,
    settings: { dataKey, x402PayTo: payTo },
    clock: () => new Date(Date.now() + ms),
    log: silentLog,
  })
  const owed = () => readSystemBalance(database, 'receivable:channels', 'USDC')
  const revenue = () => readSystemBalance(database, 'revenue:x402.fx', 'USDC')

  async function newPayer(units = 200_000n): Promise<PrivateKeyAccount> {
    const account = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: account.address, units }])
    return account
  }
  /** @property scheme keeps the state of the client's channels. */
  function clientOf(account: PrivateKeyAccount, through: typeof fetch = fetch) {
    const signer = {
      address: account.address,
      signTypedData: (message: never) => account.signTypedData(message),
      readContract: (call: {
        address: `0x${string}`
        abi: readonly unknown[]
        functionName: string
        args?: readonly unknown[]
      }) => chain.signer.readContract({ ...call, args: call.args ?? [] }),
    }
    const scheme = new BatchSettlementEvmScheme(signer as never)
    return { scheme, buy: wrapFetchWithPayment(through, new x402Client().register('eip155:*', scheme)) }
  }

  it('takes one deposit, then a voucher for each answer without a transaction', async () => {
    const payer = await newPayer()
    const { buy } = clientOf(payer)
    const [owedBefore, revenueBefore] = [await owed(), await revenue()]
    expect((await buy(shop.url)).status).toBe(200)
    const block = await chain.blockNumber()
    expect(await chain.readBalance('USDC', payer.address)).toBe(100_000n)
    for (let times = 1; times < 8; times += 1) {
      const response = await buy(shop.url)
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({
        result: '92.5',
        payment: { amount: '0.01', payer: payer.address, transaction: '' },
      })
    }
    expect(await chain.blockNumber()).toBe(block)
    expect((await revenue()) - revenueBefore).toBe(80_000n)
    expect((await owed()) - owedBefore).toBe(-80_000n)
  })

  it('answers a repeated voucher from the books, and charges it once', async () => {
    const spy = spyingFetch()
    const { buy } = clientOf(await newPayer(), spy.fetch)
    const before = await revenue()
    const first: unknown = await (await buy(shop.url)).json()
    for (let times = 0; times < 2; times += 1) {
      const again = await fetch(shop.url, { headers: spy.payment() })
      expect(again.status).toBe(200)
      expect(await again.json()).toEqual(first)
    }
    expect((await revenue()) - before).toBe(10_000n)
    // A later voucher was charged since, or it bought something else: the client is told where its channel stands.
    const older = spy.payment()
    expect((await fetch(`${shop.url}&amount=7`, { headers: older })).status).toBe(402)
    expect((await buy(shop.url)).status).toBe(200)
    const refused = await fetch(shop.url, { headers: older })
    expect(refused.status).toBe(402)
    const { error, accepts } = decodePaymentRequiredHeader(refused.headers.get('PAYMENT-REQUIRED') ?? '')
    expect(error).toBe('invalid_batch_settlement_evm_cumulative_amount_mismatch')
    expect(accepts.find(({ scheme }) => scheme === 'batch-settlement')?.extra).toMatchObject({
      channelState: { chargedCumulativeAmount: '20000' },
    })
    expect((await revenue()) - before).toBe(20_000n)
  })

  it('charges a voucher once that is sent three times at once', async () => {
    const before = await revenue()
    const { buy } = clientOf(await newPayer(), async (input, init) => {
      const request = new Request(input, init)
      if (!request.headers.has('PAYMENT-SIGNATURE')) return fetch(request)
      const copies = await Promise.all([1, 2, 3].map(() => fetch(request.clone())))
      expect(copies.map(({ status }) => status)).toEqual([200, 200, 200])
      return copies[0] ?? Promise.reject(new Error('unreachable'))
    })
    for (let times = 0; times < 3; times += 1) expect((await buy(shop.url)).status).toBe(200)
    expect((await revenue()) - before).toBe(30_000n)
  })

  it('tells a client that has lost its state where its channel stands', async () => {
    const payer = await newPayer()
    const lost = clientOf(payer)
    for (let times = 0; times < 3; times += 1) expect((await lost.buy(shop.url)).status).toBe(200)
    const forgetful = clientOf(payer)
    const before = await revenue()
    expect((await forgetful.buy(shop.url)).status).toBe(200)
    expect((await revenue()) - before).toBe(10_000n)
  })

  it('refuses a voucher above the deposit, one of a stranger, and one of another seller', async () => {
    const before = await revenue()
    const tamper = (change: (payload: Record<string, Record<string, unknown>>) => void) =>
      clientOf(privateKeyToAccount(generatePrivateKey()), async (input, init) => {
        const request = new Request(input, init)
        const header = request.headers.get('PAYMENT-SIGNATURE')
        if (header === null) return fetch(request)
        const payment = JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
        change(payment.payload)
        const encoded = Buffer.from(JSON.stringify(payment)).toString('base64')
        const response = await fetch(shop.url, { headers: { 'PAYMENT-SIGNATURE': encoded } })
        expect(response.status).toBe(402)
        expect(decodePaymentRequiredHeader(response.headers.get('PAYMENT-REQUIRED') ?? '').error).toMatch(
          /batch_settlement/,
        )
        return response
      })
    const attempts = [
      // A payer without money.
      () => undefined,
      (payload: Record<string, Record<string, unknown>>) => {
        Object.assign(payload.channelConfig ?? {}, { receiver: `0x${'1'.repeat(40)}` })
      },
      (payload: Record<string, Record<string, unknown>>) => {
        Object.assign(payload.channelConfig ?? {}, { receiverAuthorizer: `0x${'1'.repeat(40)}` })
      },
      (payload: Record<string, Record<string, unknown>>) => {
        Object.assign(payload.voucher ?? {}, { maxClaimableAmount: '90000' })
      },
      (payload: Record<string, Record<string, unknown>>) => {
        Object.assign(payload.deposit ?? {}, { amount: '10000' })
      },
    ]
    for (const change of attempts)
      await tamper(change)
        .buy(shop.url)
        .catch(() => undefined)
    expect(await revenue()).toBe(before)
  })

  it('gives the rest back at the payer’s wish, and keeps what was charged', async () => {
    const payer = await newPayer()
    const { buy, scheme } = clientOf(payer)
    for (let times = 0; times < 4; times += 1) expect((await buy(shop.url)).status).toBe(200)
    const income = await chain.readBalance('USDC', payTo)
    expect(await scheme.refund(shop.url)).toMatchObject({ success: true })
    expect(await chain.readBalance('USDC', payer.address)).toBe(160_000n)
    await collectChannels(later(HOUR_MS))
    expect((await chain.readBalance('USDC', payTo)) - income).toBeGreaterThanOrEqual(40_000n)
    // The channel opens again with a new deposit.
    expect((await buy(shop.url)).status).toBe(200)
    expect(await chain.readBalance('USDC', payer.address)).toBe(60_000n)
  })

  it('claims what is owed after a while, pays it out and books it once', async () => {
    const { buy } = clientOf(await newPayer())
    for (let times = 0; times < 5; times += 1) expect((await buy(shop.url)).status).toBe(200)
    expect(await owed()).toBeLessThanOrEqual(-50_000n)
    const received = await chain.readBalance('USDC', payTo)
    expect(await collectChannels(later(0))).toBe(0)
    expect(await chain.readBalance('USDC', payTo)).toBe(received)
    // Several gateways at once, until nothing is due.
    for (let rounds = 0; rounds < 5; rounds += 1)
      await Promise.all([1, 2].map(() => collectChannels(later(HOUR_MS * (rounds + 1)))))
    expect(await owed()).toBe(0n)
    expect((await chain.readBalance('USDC', payTo)) - received).toBeGreaterThanOrEqual(50_000n)
    expect(await chain.readBalance('USDC', payTo)).toBe(
      -(await readSystemBalance(database, `external:${chain.name}`, 'USDC')),
    )
    expect(await chain.readBalance('USDC', channelsAddress)).toBeGreaterThan(0n)
    expect((await buy(shop.url)).status).toBe(200)
  })

  it('ends a payment whose process died: as paid where its channel was charged, else not at all', async () => {
    const { buy } = clientOf(await newPayer())
    expect((await buy(shop.url)).status).toBe(200)
    const rows = await database.kysely
      .selectFrom('payment')
      .selectAll()
      .where('scheme', '=', 'batch-settlement')
      .orderBy('created_at', 'desc')
      .limit(1)
      .execute()
    const [row] = rows
    if (row === undefined) throw new Error('no payment')
    const leave = async (id: string, cumulative: string) => {
      const nonce = `${row.nonce.split('/')[0]}/${cumulative}`
      const left = { ...row, id, nonce, state: 'taking' as const, receipt: null }
      await database.kysely
        .insertInto('payment')
        .values({ ...left, answer: JSON.stringify(left.answer) })
        .execute()
      return left
    }
    const uncharged = await leave('pay_uncharged', '999999')
    expect(await resolvePayment(later(0), uncharged)).toBe('pending')
    expect(await resolvePayment(later(HOUR_MS), uncharged)).toBe('failed')
    expect(await findPayment(database, uncharged.id)).toBeUndefined()
    // Less than what was charged is no voucher that was charged.
    const charged = await leave('pay_charged', '9999')
    expect(await resolvePayment(later(0), charged)).toBe('pending')
    await database.kysely
      .insertInto('sold_voucher')
      .values({ channel_id: row.nonce.split('/')[0] ?? '', cumulative: 9_999n })
      .execute()
    expect(await resolvePayment(later(0), charged)).toBe('settled')
    expect(await findPayment(database, charged.id)).toMatchObject({ state: 'settled' })
  })
})
