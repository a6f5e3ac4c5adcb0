/** Wallet ownership changes while transactions are pending, on a real chain over real HTTP. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { tokenBalance } from './keyed-owners.ts'
import { startOnOwnNode } from './own-node.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const challenge = z.looseObject({
  challengeId: z.string(),
  publicKey: z.looseObject({ challenge: z.string() }),
})
const wallet = z.object({
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
})

describe('a wallet that gets a passkey for its owner', () => {
  const own = startOnOwnNode()

  const rpc = (method: string, params: unknown[] = []) =>
    fetch(own().node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  const addPasskey = async ({ token }: Person) => {
    const device = newAuthenticator(`http://localhost:${new URL(own().gateway.origin).port}`)
    const headers = { authorization: `Bearer ${token}` }
    const post = (body: object) =>
      requestJson(own().gateway.origin, 'POST', '/api/auth/webauthn', {
        body: { action: 'register', ...body },
        headers,
      })
    const { challengeId, publicKey } = challenge.parse((await post({ credential: null })).body)
    expect(await post({ challengeId, credential: device.create(publicKey) })).toMatchObject({ status: 200 })
  }
  const pay = (guest: Person, destination: string, amount: string, key: string) =>
    guest.send(
      'POST',
      '/api/wallets/transfer',
      { destination, amount, signature: 'sandbox' },
      { 'idempotency-key': key },
    )

  it('still receives the outcome of transactions that the gateway signed before', async () => {
    const guest = await newGuest(own().gateway.origin)
    const [first, second] = [
      '0x00000000000000000000000000000000000a11ce',
      '0x00000000000000000000000000000000000b0b00',
    ]
    expect(await pay(guest, first, '1', 'deploys')).toMatchObject({ body: { status: 'confirmed' } })
    await rpc('evm_setAutomine', [false])
    const paid = pay(guest, second, '400', 'pending')
    await sleep(1_000)
    await addPasskey(guest)
    await paid
    await rpc('evm_mine')
    await rpc('evm_setAutomine', [true])
    const states = async () => {
      const { body } = await guest.send('GET', '/api/wallets/transfers')
      const { transfers } = z.object({ transfers: z.array(z.looseObject({ state: z.string() })) }).parse(body)
      return transfers.map(({ state }) => state)
    }
    await expect.poll(states, { timeout: 30_000 }).not.toContain('settlement_pending')
    expect(await tokenBalance(own().node.url, 'USDC', second)).toBe(400_000_000n)
    expect(await states()).toEqual(['confirmed', 'confirmed'])
    const { balances } = wallet.parse((await guest.send('GET', '/api/wallets')).body)
    expect(balances.find(({ token }) => token === 'USDC')).toMatchObject({ amount: '599', held: '0' })
  }, 60_000)
})
