/** The quote sold by the scheme `upto`, to a stock client: it costs what its pair and amount cost, at most the price. */
import { x402Client } from '@x402/core/client'
import { UptoEvmScheme } from '@x402/evm/upto/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { parseAbi, parseSignature } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnvilChain } from '../../../../src/chain/node/anvil.ts'
import { permit2Address } from '../../../../src/chain/rpc/networks.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { signedPaymentTypes } from '../../../../src/core/base/signed-payment-types.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import { meteredPrice } from '../../../../src/rails/selling/payments/metered-price.ts'
import { readOutcome } from '../../../../src/rails/selling/payments/resolve-payment.ts'
import type { Database } from '../../../../src/storage/database.ts'
import { openPglite } from '../../../../src/storage/pglite.ts'
import { dataKey, openShop, parseJsonText, payTo, type Shop, spyingFetch, tamperingFetch } from './scene.ts'
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
const abi = parseAbi(['function permit(address,address,uint256,uint256,uint8,bytes32,bytes32)'])

describe.each(chains)('the paywall by upto on %s', (_name, open) => {
  let chain: Chain
  let database: Database
  let shop: Shop
  beforeAll(async () => {
    chain = await open()
    database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
    await database.migrate()
    shop = await openShop(chain, { database, metered: meteredPrice })
    shop.deliver = async () => ({ quoteId: 'quote_1', from: 'USD', to: 'EUR', amount: '100', result: '92.5' })
  }, 60_000)
  afterAll(async () => {
    await shop.close()
    await database.close()
    await chain.close()
  })

  const income = () => chain.readBalance('USDC', payTo)

  /** A customer with 0.05 USDC, all of which Permit2 may take. */
  async function newPayer(): Promise<PrivateKeyAccount> {
    const account = privateKeyToAccount(generatePrivateKey())
    const value = 50_000n
    await chain.mint([{ token: 'USDC', to: account.address, units: value }])
    const deadline = BigInt(Math.floor(Date.now() / 1000) + 600)
    const signature = await account.signTypedData({
      domain: { name: 'USDC', version: '2', chainId: chain.id, verifyingContract: chain.tokens.USDC },
      types: signedPaymentTypes,
      primaryType: 'Permit',
      message: { owner: account.address, spender: permit2Address, value, nonce: 0n, deadline },
    })
    const { r, s, yParity } = parseSignature(signature)
    const hash = await chain.signer.writeContract({
      address: chain.tokens.USDC,
      abi,
      functionName: 'permit',
      args: [account.address, permit2Address, value, deadline, yParity + 27, r, s],
    })
    await chain.signer.waitForTransactionReceipt({ hash })
    return account
  }
  const clientOf = (account: PrivateKeyAccount, through: typeof fetch = fetch) =>
    wrapFetchWithPayment(through, new x402Client().register('eip155:*', new UptoEvmScheme(account)))

  it('sells for less than the maximum to a stock client, and answers a repeat from the books', async () => {
    const payer = await newPayer()
    const before = await income()
    const spy = spyingFetch()
    const response = await clientOf(payer, spy.fetch)(shop.url)
    expect(response.status).toBe(200)
    const answer: unknown = await response.json()
    expect(answer).toMatchObject({ result: '92.5', payment: { amount: '0.005', payer: payer.address } })
    expect(parseJsonText(response.headers.get('PAYMENT-RESPONSE') ?? '')).toMatchObject({ success: true })
    expect((await income()) - before).toBe(5_000n)
    const again = await fetch(shop.url, { headers: spy.payment() })
    expect(await again.json()).toEqual(answer)
    expect((await income()) - before).toBe(5_000n)
  })

  it('settles concurrent duplicates once', async () => {
    const payer = await newPayer()
    const before = await income()
    const spy = spyingFetch()
    let open: (value?: unknown) => void = () => undefined
    const opened = new Promise((resolve) => {
      open = resolve
    })
    const client = clientOf(payer, async (input, init) => {
      const request = new Request(input, init)
      if (!request.headers.has('PAYMENT-SIGNATURE')) return spy.fetch(request)
      const copies = [1, 2, 3].map(() => spy.fetch(request.clone()))
      open()
      const [first, ...others] = await Promise.all(copies)
      for (const other of others) expect(other.status).toBe(200)
      if (first === undefined) throw new Error('unreachable')
      return first
    })
    expect((await client(shop.url)).status).toBe(200)
    await opened
    expect((await income()) - before).toBe(5_000n)
  })

  it('finds the settlement of a payment by its mark, among others of the payer', async () => {
    const payer = await newPayer()
    const client = clientOf(payer)
    for (const _time of [1, 2]) expect((await client(shop.url)).status).toBe(200)
    const rows = await database.kysely
      .selectFrom('payment')
      .selectAll()
      .where('payer', '=', payer.address.toLowerCase())
      .execute()
    expect(rows).toHaveLength(2)
    for (const row of rows) {
      expect(row).toMatchObject({ scheme: 'upto', state: 'settled', units: 5_000n })
      const found = await readOutcome({ chain, settings: { dataKey } }, { ...row, transaction_hash: null })
      expect(found).toEqual({ status: 'paid', transactionHash: row.transaction_hash })
    }
  })

  it.each([
    ['permit2_amount_mismatch', { permitted: { amount: '9999' } }],
    ['invalid_permit2_recipient_mismatch', { witness: { to: `0x${'1'.repeat(40)}` } }],
    ['upto_facilitator_mismatch', { witness: { facilitator: `0x${'1'.repeat(40)}` } }],
    ['invalid_permit2_spender', { spender: `0x${'1'.repeat(40)}` }],
    ['invalid_permit2_signature', { nonce: '7' }],
  ])('asks again with %s', async (reason, changes: Record<string, unknown>) => {
    const payer = await newPayer()
    const tampering = tamperingFetch((payment) => {
      const read = structuredClone(payment) as {
        payload: { permit2Authorization: Record<string, Record<string, unknown>> }
      }
      const permit = read.payload.permit2Authorization
      for (const [name, change] of Object.entries(changes))
        Object.assign(permit, {
          [name]: typeof change === 'object' ? { ...permit[name], ...change } : change,
        })
      return read
    })
    const response = await clientOf(payer, tampering)(shop.url)
    expect(response.status).toBe(402)
    expect(parseJsonText(response.headers.get('PAYMENT-REQUIRED') ?? '')).toMatchObject({ error: reason })
    expect(await chain.readBalance('USDC', payer.address)).toBe(50_000n)
  })

  it('takes nothing without the permission of the payer', async () => {
    const payer = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: payer.address, units: 50_000n }])
    expect((await clientOf(payer)(shop.url)).status).toBe(402)
    expect(await chain.readBalance('USDC', payer.address)).toBe(50_000n)
  })

  it('offers it on version 2 only, beside the exact price', async () => {
    const response = await fetch(shop.url)
    expect(await response.json()).toMatchObject({ accepts: [{ scheme: 'exact' }] })
    const facilitatorAddress = chain.signer.address
    expect(parseJsonText(response.headers.get('PAYMENT-REQUIRED') ?? '')).toMatchObject({
      accepts: [
        { scheme: 'exact', amount: '10000' },
        { scheme: 'upto', amount: '10000', extra: { assetTransferMethod: 'permit2', facilitatorAddress } },
        { scheme: 'batch-settlement', amount: '10000' },
      ],
    })
  })
})

describe('the metered price', () => {
  it.each([
    [{ from: 'USD', to: 'EUR', amount: '100' }, 5_000n],
    [{ from: 'EUR', to: 'USDC', amount: '0.5' }, 2_000n],
    [{ from: 'EUR', to: 'GBP', amount: '99.99' }, 6_000n],
    [{ from: 'EUR', to: 'GBP', amount: '1000000' }, 10_000n],
    [{}, 10_000n],
  ])('of %o is %s of 10,000', (answer, units) => {
    expect(meteredPrice(answer, 10_000n)).toBe(units)
  })

  it('is rounded up', () => {
    expect(meteredPrice({ from: 'USD', to: 'EUR', amount: '1' }, 1n)).toBe(1n)
  })
})
