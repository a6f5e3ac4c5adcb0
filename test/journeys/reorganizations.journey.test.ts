/**
 * Settlements that a reorganization removes and the gateway resends are booked once, on a real chain over real HTTP.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { newOutsider, readAddress, tokenBalance } from './keyed-owners.ts'
import { startOnOwnNode } from './own-node.ts'
import { newGuest, type Person } from './people.ts'

const wallet = z.object({
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
})

describe('a reorganization', () => {
  const own = startOnOwnNode()

  const rpc = async (method: string, params: unknown[] = []) => {
    const response = await fetch(own().node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return z.looseObject({ result: z.unknown() }).parse(await response.json()).result
  }
  /** Mines empty blocks, so that the blocks below them stay. */
  const mineEmpty = () => rpc('anvil_mine', ['0x8'])
  /** Waits until blocks are observed before they are replaced. */
  const reorganize = async () => {
    await sleep(2_500)
    await rpc('anvil_reorg', [6, []])
  }
  const readUsdc = async (person: Person) => {
    const { balances } = wallet.parse((await person.send('GET', '/api/wallets')).body)
    return balances.find(({ token }) => token === 'USDC')
  }
  const onChain = async (person: Person) => tokenBalance(own().node.url, 'USDC', await readAddress(person))
  /** Highest balance shown during recovery. */
  const highest = async (person: Person, ms: number) => {
    let highestSeen = 0
    for (const end = performance.now() + ms; performance.now() < end; ) {
      highestSeen = Math.max(highestSeen, Number((await readUsdc(person))?.amount))
      await sleep(100)
    }
    return highestSeen
  }

  it('books a relay once that is resent by another transaction', async () => {
    const guest = await newGuest(own().gateway.origin)
    const attacker = await newOutsider(own().gateway.origin, own().node.url)
    await mineEmpty()
    // Only its payer can resend it, so that the relay gets another nonce.
    await attacker.buyQuote({ race: 'none' })
    await attacker.relay(guest, { race: 'none' })
    expect(await readUsdc(guest)).toMatchObject({ amount: '1002', held: '0' })
    await reorganize()
    expect(await highest(guest, 15_000)).toBe(1002)
    expect(await onChain(guest)).toBe(1_002_000_000n)
    expect(await readUsdc(guest)).toMatchObject({ amount: '1002', held: '0' })
  }, 60_000)

  it('books transfers once that are resent by other transactions', async () => {
    const payee = await newGuest(own().gateway.origin)
    const payers = await Promise.all(Array.from({ length: 3 }, () => newGuest(own().gateway.origin)))
    const destination = await readAddress(payee)
    const pay = async (payer: Person, amount: string) =>
      expect(
        await payer.send('POST', '/api/wallets/transfer', { destination, amount, signature: 'sandbox' }),
      ).toMatchObject({ body: { status: 'confirmed' } })
    await Promise.all(payers.map((payer) => pay(payer, '1')))
    await mineEmpty()
    await Promise.all(payers.map((payer) => pay(payer, '5')))
    expect(await readUsdc(payee)).toMatchObject({ amount: '1018', held: '0' })
    await reorganize()
    expect(await highest(payee, 15_000)).toBe(1018)
    expect(await onChain(payee)).toBe(1_018_000_000n)
    for (const payer of payers) expect(await readUsdc(payer)).toMatchObject({ amount: '994', held: '0' })
  }, 60_000)

  it('resends nothing on a chain that restarted empty and was restored from the books', async () => {
    const guest = await newGuest(own().gateway.origin)
    const destination = '0x00000000000000000000000000000000000c0de5'
    expect(
      await guest.send('POST', '/api/wallets/transfer', { destination, amount: '5', signature: 'sandbox' }),
    ).toMatchObject({ body: { status: 'confirmed' } })
    await sleep(2_500)
    await own().node.stop()
    own().node = await spawnAnvil(
      findAnvil(process.env.ANVIL_BIN),
      Number(new URL(own().node.url).port),
      10_000,
    )
    await expect.poll(() => onChain(guest).catch(() => 0n), { timeout: 30_000 }).toBe(995_000_000n)
    await sleep(15_000)
    expect(await tokenBalance(own().node.url, 'USDC', destination)).toBe(0n)
    expect(await onChain(guest)).toBe(995_000_000n)
    expect(await readUsdc(guest)).toMatchObject({ amount: '995', held: '0' })
  }, 90_000)
})
