/**
 * A database restored to a moment in the past, on a chain that went on: what the books forgot is found on the chain, and nothing is
 * paid twice.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { erc20Abi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { testServerUrl } from '../engines.ts'
import { type ChainProxy, startChainProxy } from '../journeys/chain-proxy.ts'
import { type Mainnet, startMainnet } from '../journeys/mainnet.ts'
import { buildNodeEnv, type OnMainnet, openOnMainnet, openPayer } from '../journeys/on-mainnet.ts'
import { type Person, requestJson } from '../journeys/people.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type ArchivedPostgres, canArchive, startArchivedPostgres } from './archived-postgres.ts'
import { query } from './replicated-postgres.ts'

const PATIENT = { timeout: 60_000, interval: 500 }
const hex = z.templateLiteral(['0x', z.string()])

const activity = z.looseObject({
  entries: z.array(
    z.looseObject({
      object: z.looseObject({ kind: z.string() }),
      amount: z.string(),
      counterparty: z.string().nullable(),
    }),
  ),
})

/** The statement that docs/operations.md has between the restore and the start. */
function readStatement(): string {
  const page = readFileSync('docs/operations.md', 'utf8')
  const [, statement = ''] = /-c "(update rail_control [^"]*)"/.exec(page) ?? []
  expect(statement).toContain('enabled = false')
  return statement
}

describe.skipIf(!canArchive || testServerUrl === undefined || !hasAnvil())('a restored database', () => {
  let postgres: ArchivedPostgres
  let base: Mainnet
  let proxy: ChainProxy
  let scene: OnMainnet
  let person: Person
  let apiKey: string
  let safe: `0x${string}`

  beforeAll(async () => {
    postgres = await startArchivedPostgres()
    base = await startMainnet('base')
    await base.giveGas(privateKeyToAccount(`0x${'1'.repeat(64)}`).address)
    proxy = await startChainProxy(() => base.url)
    scene = await openOnMainnet(base, { ...buildNodeEnv(proxy), DATABASE_URL: postgres.url })
    ;({ person, apiKey } = await openPayer(scene, base))
    safe = hex.parse((await person.send('GET', '/api/wallets')).body.safeAddress)
  }, 240_000)
  afterAll(async () => {
    await scene?.close()
    await proxy?.close()
    await base?.close()
    await postgres?.close()
  }, 60_000)

  const newPayee = () => privateKeyToAccount(generatePrivateKey()).address
  const pay = (destination: string, amount: string, key: string = randomUUID()) =>
    requestJson(scene.production.gateway().origin, 'POST', '/api/wallets/transfer', {
      body: { destination, amount },
      headers: { authorization: `Bearer ${apiKey}`, 'idempotency-key': key },
    })
  const readBooks = async () => {
    const { balances } = z
      .looseObject({
        balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
      })
      .parse((await person.send('GET', '/api/wallets')).body)
    const { amount, held } = balances.find(({ token }) => token === 'USDC') ?? {}
    return { amount, held }
  }
  const readReceived = async (address: `0x${string}`) => Number(await base.readBalance(address)) / 1e6
  /** Transfers of the wallet to an address, on the chain. */
  const countPayments = async (to: `0x${string}`) =>
    (
      await base.client.getContractEvents({
        abi: erc20Abi,
        eventName: 'Transfer',
        address: base.usdc,
        args: { from: safe, to },
        fromBlock: 0n,
      })
    ).length

  it('is brought up to its chain by a gateway that starts on it, and pays nothing twice', async () => {
    const [early, unsent, late, later] = [newPayee(), newPayee(), newPayee(), newPayee()]
    expect(await pay(early, '1')).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    postgres.backUp()
    expect(await pay(early, '2')).toMatchObject({ status: 200, body: { status: 'confirmed' } })

    // The moment to restore: a transfer is reserved and written, and no node has it yet.
    proxy.cut('before broadcast', 1, () => postgres.mark('between'))
    const key = randomUUID()
    const first = await pay(unsent, '3', key)
    expect(first.body).toMatchObject({ code: 'settlement_pending' })
    await expect.poll(() => readReceived(unsent), PATIENT).toBe(3)

    // What the restored books will not know: two payments, and a deposit.
    const forgotten = randomUUID()
    expect(await pay(late, '4', forgotten)).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    expect(await pay(later, '5')).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    await base.pay(safe, 7_000_000n)
    await expect.poll(readBooks, PATIENT).toEqual({ amount: '42', held: '0' })

    const { process: gateway } = scene.production.gateway()
    const ended = once(gateway, 'exit')
    await postgres.kill()
    gateway.kill('SIGKILL')
    await ended
    await postgres.restoreTo('between')
    await query(postgres.url, readStatement())
    await scene.killAndStart()

    await expect.poll(readBooks, PATIENT).toEqual({ amount: '42', held: '0' })
    // Long enough for whatever the restored books believe to be open.
    await new Promise((resolve) => setTimeout(resolve, 10_000))
    expect(await readBooks()).toEqual({ amount: '42', held: '0' })
    expect(await readReceived(safe)).toBe(42)
    for (const [to, count, amount] of [
      [early, 2, 3],
      [unsent, 1, 3],
      [late, 1, 4],
      [later, 1, 5],
    ] as const)
      expect([await countPayments(to), await readReceived(to)]).toEqual([count, amount])

    // A caller that repeats the call whose outcome was open gets the one outcome.
    expect(await pay(unsent, '3', key)).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    expect(await readReceived(unsent)).toBe(3)

    const metrics = await (await fetch(`${scene.production.gateway().local}/metrics`)).text()
    expect(metrics).toMatch(/bursar_ledger_drift\{asset="USDC",chain="base"\} 0/)
    expect(metrics).not.toMatch(/bursar_wallet_shortfall\{.*\} [1-9]/)
    const verified = await bursar(['audit', 'verify'], scene.production.environment)
    expect([verified.code, verified.err]).toEqual([0, ''])

    // The payments of the lost time are in the books as what left the wallet without an operation.
    const { entries } = activity.parse((await person.send('GET', '/api/activity?limit=20')).body)
    const listed = (kind: string) =>
      entries
        .filter((item) => item.object.kind === kind)
        .map(({ amount, counterparty }) => `${amount} ${counterparty}`)
    expect(listed('withdrawal').toSorted()).toEqual(['4 null', '5 null'])
    expect(listed('transfer').toSorted()).toEqual([`1 ${early}`, `2 ${early}`, `3 ${unsent}`])

    // The books forgot the idempotency key of an answered call: until the rail is on again, its repetition pays nothing.
    expect(await pay(late, '4', forgotten)).toMatchObject({ status: 403, body: { code: 'rail_disabled' } })
    expect(await countPayments(late)).toBe(1)
    const on = await scene.founder.send('PUT', '/api/rails/wallet-transfer/controls', { enabled: true })
    expect(on.status).toBe(200)
    expect(await pay(early, '1')).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    await expect.poll(readBooks, PATIENT).toEqual({ amount: '41', held: '0' })
  }, 240_000)
})
