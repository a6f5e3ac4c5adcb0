/**
 * Cards on two real chains, over HTTP on both engines: a purchase takes USDC from the chain where it lies, in one decision, and its
 * clearing, its rest and its reversal stay on that chain. The books are what both chains show, in the wallet and in the escrow,
 * whatever a kill or a silent node does.
 */
import { randomUUID } from 'node:crypto'
import { createPublicClient, http, parseAbiItem } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { chainFacts } from '../../src/core/money/chains.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { longestEngines } from '../engines.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { canVerify } from '../records/decisions/verify-bundle.ts'
import { askForApproval } from './card-request.ts'
import { readAddress, stableTokens } from './keyed-owners.ts'
import { enrollMfa, newMailbox, type Person, personFrom, requestJson, signInByEmail } from './people.ts'
import { type ChainName, chainNames, startTwoChains, type TwoChains } from './two-chains.ts'

const HOME = 'base-sepolia'
const AWAY = 'arbitrum-sepolia'
const PAYEE: Address = '0x00000000000000000000000000000000000000a1'
/** Polling options: the chains and the jobs need time. */
const SLOW = { timeout: 60_000, interval: 250 }
const text = z.string()
const escrowView = z.looseObject({
  asset: text,
  amount: text,
  chains: z.array(z.object({ chain: text, asset: text, amount: text })).optional(),
})
const transferEvent = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')

/** @property token an access key of the owner: a session does not survive another origin. */
interface Holder {
  readonly token: string
  readonly address: Address
  readonly card: string
}

describe.each(longestEngines)('cards on two chains on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    let world: TwoChains
    let signed: Person
    let signedAddress: Address = '0x'

    beforeAll(async () => {
      world = await startTwoChains(isPostgres)
      signed = await signInByEmail(world.readOrigin(), newMailbox('cards-on-two-chains'))
      await enrollMfa(signed)
      signedAddress = await readAddress(signed)
      await fund(signedAddress, AWAY, '400')
    }, 120_000)
    afterAll(() => world?.stop(), 60_000)

    const fund = async (address: string, chain: ChainName, amount: string) => {
      const body = { address, token: 'USDC', amount, chain }
      const { status } = await requestJson(world.readOrigin(), 'POST', '/sandbox/faucet', { body })
      expect(status).toBe(200)
    }
    const hook = async (message: Record<string, unknown>, id: string = randomUUID()) => {
      const { body: credentials } = await requestJson(world.readOrigin(), 'GET', '/sandbox/credentials')
      const body = JSON.stringify(message)
      const response = await fetch(`${world.readOrigin()}/api/webhooks/lithic`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...signWebhook({ id, body, at: new Date() }, String(credentials.lithicWebhookSecret)),
        },
        body,
      })
      return z.record(text, z.unknown()).parse(await response.json())
    }
    const authorize = async (card: string, cents: number) => {
      const request = askForApproval(card, cents)
      return { token: request.token, card, cents, result: (await hook(request)).result }
    }
    interface Purchase {
      readonly token: string
      readonly card: string
      readonly cents: number
    }
    /** Delivers a purchase's events. @param events such as `['CLEARING', 1_250]`. */
    const deliver = (
      { token, card, cents }: Purchase,
      status: string,
      ...events: readonly (readonly [string, number])[]
    ) =>
      hook({
        event_type: 'card_transaction.updated',
        ...{ token, card_token: card, status },
        events: [['AUTHORIZATION', cents] as const, ...events].map(([type, amount], at) => ({
          ...{ token: `${token}-${at}`, type, amount, result: 'APPROVED' },
        })),
      })
    const readPaid = (name: ChainName) => world.readChain(name, stableTokens.treasury)
    const readEscrow = async (token: string) =>
      escrowView.parse((await world.send(token, 'GET', '/api/cards')).body.escrow)
    const listDecisions = async () => {
      const { body } = await world.send(signed.token, 'GET', '/api/agents/decisions?limit=100')
      return z.array(z.looseObject({ operation: text })).parse(body.decisions)
    }
    const createKey = async (policy: object, scopes = ['cards:read', 'cards:write', 'cards:pay']) => {
      const { body } = await world.send(signed.token, 'POST', '/api/developer/keys', {
        ...{ name: 'Payer', scopes },
        policy: {
          ...{ perTransaction: { max: '300' }, dailyBudget: { max: '900' }, categories: { allow: ['card'] } },
          ...policy,
        },
      })
      return String(body.key)
    }
    const issue = async (by: string, members: object = {}) => {
      const { status, body } = await world.send(by, 'POST', '/api/cards', members, {
        'idempotency-key': randomUUID(),
      })
      expect({ status, body }).toMatchObject({ status: 200 })
      return String(body.id)
    }
    /** An owner with a passkey and USDC on the second chain alone, whose wallet is on no chain yet. */
    const newHolder = async (amount: string): Promise<Holder> => {
      const device = newAuthenticator(`http://localhost:${new URL(world.readOrigin()).port}`)
      const step = (body: object) => requestJson(world.readOrigin(), 'POST', '/api/auth/webauthn', { body })
      const { body: asked } = await step({ action: 'register', displayName: 'Ada' })
      const { body } = await step({ action: 'register', credential: device.create(asked.publicKey) })
      const person = personFrom(world.readOrigin(), body)
      const address = await readAddress(person)
      await fund(address, AWAY, amount)
      const card = await issue(person.token, { limits: { daily: null, perPurchase: null } })
      const key = await world.send(person.token, 'POST', '/api/developer/keys', {
        ...{ name: 'Reader', scopes: ['wallets:read', 'cards:read', 'investing:read'] },
      })
      expect(key).toMatchObject({ status: 200 })
      const token = String(key.body.key)
      await awaitBooked(token, AWAY, BigInt(amount) * 1_000_000n)
      return { token, address, card }
    }
    const awaitBooked = (token: string, name: ChainName, units: bigint) =>
      expect.poll(() => world.readBooked(token, name), SLOW).toEqual({ available: units, held: 0n })
    /** The books are what the chains show: in the wallet, and in the escrow that its pulls have reached. */
    const expectEqual = async ({ token, address }: Pick<Holder, 'token' | 'address'>) => {
      await world.expectEqual(token, address)
      const { amount, chains = [{ chain: HOME, amount }] } = await readEscrow(token)
      for (const name of chainNames) {
        const client = createPublicClient({ transport: http(world.urlOf(name)) })
        const sent = await client.getLogs({
          address: chainFacts(name).tokens.USDC.address,
          event: transferEvent,
          args: { from: address },
          fromBlock: 0n,
        })
        const places = new Set(sent.flatMap(({ args: { to } }) => to?.toLowerCase() ?? []))
        for (const place of [stableTokens.treasury, PAYEE]) places.delete(place.toLowerCase())
        let units = 0n
        for (const place of places)
          units += await world.readChain(name, z.templateLiteral(['0x', text]).parse(place))
        const booked = chains.filter(({ chain }) => chain === name).map((part) => Number(part.amount))
        expect({ name, units }).toEqual({ name, units: BigInt(Math.round((booked[0] ?? 0) * 1e6)) })
      }
    }
    const owner = () => ({ token: signed.token, address: signedAddress })

    it('pays from the second chain by an agent’s card, in one decision, and is cleared there', async () => {
      const key = await createKey({})
      const card = await issue(key)
      const before = {
        home: await readPaid(HOME),
        away: await readPaid(AWAY),
        decisions: await listDecisions(),
      }
      const purchase = await authorize(card, 1_250)
      expect(purchase.result).toBe('APPROVED')
      expect(await world.readBooked(signed.token, AWAY)).toEqual({
        available: 387_500_000n,
        held: 12_500_000n,
      })
      const [decision, ...others] = (await listDecisions()).slice(0, -before.decisions.length || undefined)
      expect(others).toEqual([])
      expect(decision).toMatchObject({ operation: 'cards.authorize', chain: AWAY })
      await deliver(purchase, 'SETTLED', ['CLEARING', 1_250])
      await expect.poll(() => readPaid(AWAY), SLOW).toBe(before.away + 12_500_000n)
      await awaitBooked(signed.token, AWAY, 387_500_000n)
      expect(await readPaid(HOME)).toBe(before.home)
      await expectEqual(owner())
    }, 90_000)

    it('pays from the chains that the policy allows, and from no other', async () => {
      const home = await issue(await createKey({ chains: [HOME] }))
      const away = await issue(await createKey({ chains: [AWAY] }))
      expect((await authorize(home, 500)).result).toBe('INSUFFICIENT_FUNDS')
      const purchase = await authorize(away, 500)
      expect(purchase.result).toBe('APPROVED')
      await deliver(purchase, 'VOIDED', ['AUTHORIZATION_REVERSAL', 500])
      await awaitBooked(signed.token, AWAY, 387_500_000n)
      await expectEqual(owner())
    }, 60_000)

    it('reserves a card for one purchase there, and returns what its merchant does not take', async () => {
      const key = await createKey({})
      const paid = await readPaid(AWAY)
      const card = await issue(key, { singleUse: { amount: '40', merchant: { name: 'Corner Shop' } } })
      expect(await world.readBooked(signed.token, AWAY)).toEqual({
        available: 347_500_000n,
        held: 40_000_000n,
      })
      const purchase = await authorize(card, 3_000)
      expect(purchase.result).toBe('APPROVED')
      await deliver(purchase, 'SETTLED', ['CLEARING', 2_500])
      await expect.poll(() => readPaid(AWAY), SLOW).toBe(paid + 25_000_000n)
      await awaitBooked(signed.token, AWAY, 362_500_000n)
      await expectEqual(owner())
    }, 90_000)

    it('sells the money of a chain once to purchases and transfers that race', async () => {
      const policy = { perTransaction: { max: '300' }, categories: { allow: ['card', 'transfer'] } }
      const key = await createKey(policy, ['cards:read', 'cards:write', 'cards:pay', 'wallets:transfer'])
      const card = await issue(key)
      const send = () =>
        world.send(
          key,
          'POST',
          '/api/wallets/transfer',
          { destination: PAYEE, amount: '150', token: 'USDC', chain: AWAY },
          { 'idempotency-key': randomUUID() },
        )
      const { available: before } = await world.readBooked(signed.token, AWAY)
      const [first, second, ...purchases] = await Promise.all([
        send(),
        send(),
        ...Array.from({ length: 3 }, () => authorize(card, 8_000)),
      ])
      const sent = [first, second].filter(({ status }) => status === 200).length
      const approved = purchases.filter(({ result }) => result === 'APPROVED')
      // 540 are asked for, and less than 400 are there.
      const left = before - BigInt(150 * sent + 80 * approved.length) * 1_000_000n
      expect(left).toBeGreaterThanOrEqual(0n)
      expect(left).toBeLessThan(150_000_000n)
      await Promise.all(approved.map((purchase) => deliver(purchase, 'SETTLED', ['CLEARING', 8_000])))
      await awaitBooked(signed.token, AWAY, left)
      await expectEqual(owner())
    }, 60_000)

    it('counts a purchase from both chains once in a budget, and gives each chain its part back', async () => {
      const { available: away } = await world.readBooked(signed.token, AWAY)
      await fund(signedAddress, HOME, '50')
      await fund(signedAddress, AWAY, '100')
      await awaitBooked(signed.token, HOME, 50_000_000n)
      await awaitBooked(signed.token, AWAY, away + 100_000_000n)
      const policy = { perTransaction: { max: '100' }, dailyBudget: { max: '100' } }
      const card = await issue(await createKey(policy))
      const purchase = await authorize(card, 9_000)
      expect(purchase.result).toBe('APPROVED')
      expect(await world.readBooked(signed.token, HOME)).toEqual({ available: 0n, held: 50_000_000n })
      expect(await world.readBooked(signed.token, AWAY)).toEqual({
        available: away + 60_000_000n,
        held: 40_000_000n,
      })
      expect((await authorize(card, 1_001)).result).not.toBe('APPROVED')
      const more = await authorize(card, 1_000)
      expect(more.result).toBe('APPROVED')
      await deliver(more, 'VOIDED', ['AUTHORIZATION_REVERSAL', 1_000])
      // Delivered twice: the part of the second chain goes back first, and once.
      const reversal = ['AUTHORIZATION_REVERSAL', 6_000] as const
      await deliver(purchase, 'PENDING', reversal)
      await deliver(purchase, 'PENDING', reversal)
      expect(await world.readBooked(signed.token, HOME)).toEqual({
        available: 20_000_000n,
        held: 30_000_000n,
      })
      expect(await world.readBooked(signed.token, AWAY)).toEqual({ available: away + 100_000_000n, held: 0n })
      await deliver(purchase, 'VOIDED', reversal, ['AUTHORIZATION_REVERSAL', 3_000])
      await awaitBooked(signed.token, HOME, 50_000_000n)
      await expectEqual(owner())
    }, 60_000)

    it('pulls what is above the float on the second chain before it approves, and returns the rest there', async () => {
      const holder = await newHolder('200')
      const paid = { home: await readPaid(HOME), away: await readPaid(AWAY) }
      const purchase = await authorize(holder.card, 12_000)
      expect(purchase.result).toBe('APPROVED')
      expect(await readEscrow(holder.token)).toEqual({
        ...{ asset: 'USDC', amount: '120' },
        chains: [{ chain: AWAY, asset: 'USDC', amount: '120' }],
      })
      expect(await world.readChain(AWAY, holder.address)).toBe(80_000_000n)
      await expectEqual(holder)
      // Two clearings of a purchase, and 20 that are never taken.
      await deliver(purchase, 'PENDING', ['CLEARING', 7_000])
      await expect.poll(() => readPaid(AWAY), SLOW).toBe(paid.away + 70_000_000n)
      await deliver(purchase, 'SETTLED', ['CLEARING', 7_000], ['CLEARING', 3_000])
      await expect.poll(() => readPaid(AWAY), SLOW).toBe(paid.away + 100_000_000n)
      await awaitBooked(holder.token, AWAY, 100_000_000n)
      expect(await readEscrow(holder.token)).toEqual({ asset: 'USDC', amount: '0' })
      expect(await readPaid(HOME)).toBe(paid.home)
      await expectEqual(holder)
      // What is returned after it was paid is cash, as on one chain.
      await deliver(purchase, 'SETTLED', ['CLEARING', 7_000], ['CLEARING', 3_000], ['RETURN', 1_000])
      const readCash = async () =>
        (await world.send(holder.token, 'GET', '/api/investing/portfolio')).body.cash
      await expect.poll(readCash, SLOW).toBe('10')
      await expectEqual(holder)
    }, 150_000)

    it('raises an authorization and reverses it there', async () => {
      const holder = await newHolder('100')
      const buy = async (amount: string, more: object) => {
        const body = {
          cardId: holder.card,
          amount,
          merchant: 'Corner Shop',
          mcc: '5411',
          clear: false,
          ...more,
        }
        return (await requestJson(world.readOrigin(), 'POST', '/sandbox/authorizations', { body })).body
      }
      const { token, result } = await buy('30', {})
      expect(result).toBe('APPROVED')
      expect(await buy('50', { token })).toMatchObject({ result: 'APPROVED' })
      expect(await buy('30', { token })).toMatchObject({ result: 'INSUFFICIENT_FUNDS' })
      await expect.poll(async () => (await readEscrow(holder.token)).amount, SLOW).toBe('80')
      await expectEqual(holder)
      const purchase = { token: String(token), card: holder.card, cents: 3_000 }
      await deliver(purchase, 'VOIDED', ['AUTHORIZATION_REVERSAL', 8_000])
      await awaitBooked(holder.token, AWAY, 100_000_000n)
      expect(await readEscrow(holder.token)).toEqual({ asset: 'USDC', amount: '0' })
      await expectEqual(holder)
    }, 120_000)

    it('takes one purchase from both chains where neither has enough', async () => {
      const holder = await newHolder('60')
      await fund(holder.address, HOME, '50')
      await awaitBooked(holder.token, HOME, 50_000_000n)
      const paid = { home: await readPaid(HOME), away: await readPaid(AWAY) }
      const purchase = await authorize(holder.card, 9_000)
      expect(purchase.result).toBe('APPROVED')
      expect(await readEscrow(holder.token)).toMatchObject({ amount: '90', chains: [{}, {}] })
      await deliver(purchase, 'SETTLED', ['CLEARING', 9_000])
      await expect.poll(() => readPaid(HOME), SLOW).toBe(paid.home + 50_000_000n)
      await expect.poll(() => readPaid(AWAY), SLOW).toBe(paid.away + 40_000_000n)
      await awaitBooked(holder.token, AWAY, 20_000_000n)
      await expectEqual(holder)
    }, 120_000)

    it('promises no more than both chains have to purchases at the same time', async () => {
      const holder = await newHolder('60')
      await fund(holder.address, HOME, '50')
      await awaitBooked(holder.token, HOME, 50_000_000n)
      const paid = (await readPaid(HOME)) + (await readPaid(AWAY))
      const purchases = await Promise.all(Array.from({ length: 6 }, () => authorize(holder.card, 3_000)))
      const approved = purchases.filter(({ result }) => result === 'APPROVED')
      expect(approved.length).toBeGreaterThan(0)
      expect(approved.length).toBeLessThanOrEqual(3)
      await Promise.all(approved.map((purchase) => deliver(purchase, 'SETTLED', ['CLEARING', 3_000])))
      await expect
        .poll(async () => (await readPaid(HOME)) + (await readPaid(AWAY)), SLOW)
        .toBe(paid + BigInt(approved.length) * 30_000_000n)
      expect((await world.send(holder.token, 'GET', '/api/cards')).body).not.toHaveProperty('owed')
      const readLeft = async () => {
        const [home, away] = [
          await world.readBooked(holder.token, HOME),
          await world.readBooked(holder.token, AWAY),
        ]
        return home.available + away.available
      }
      await expect.poll(readLeft, SLOW).toBe(110_000_000n - BigInt(approved.length) * 30_000_000n)
      await expectEqual(holder)
    }, 120_000)

    it('pulls again what a reorganization of the second chain took, and pays once', async () => {
      const holder = await newHolder('200')
      const paid = { home: await readPaid(HOME), away: await readPaid(AWAY) }
      const purchase = await authorize(holder.card, 12_000)
      expect(purchase.result).toBe('APPROVED')
      const client = createPublicClient({ transport: http(world.urlOf(AWAY)) })
      const [pull] = await client.getLogs({
        address: chainFacts(AWAY).tokens.USDC.address,
        event: transferEvent,
        args: { from: holder.address },
        fromBlock: 0n,
      })
      const depth = Number((await client.getBlockNumber()) - (pull?.blockNumber ?? 0n)) + 1
      await world.rpc(AWAY, 'anvil_reorg', [depth, []])
      expect(await world.readChain(AWAY, holder.address)).toBe(200_000_000n)
      await expect.poll(() => world.readChain(AWAY, holder.address), SLOW).toBe(80_000_000n)
      await expectEqual(holder)
      await deliver(purchase, 'SETTLED', ['CLEARING', 12_000])
      await expect.poll(() => readPaid(AWAY), SLOW).toBe(paid.away + 120_000_000n)
      await awaitBooked(holder.token, AWAY, 80_000_000n)
      expect(await readPaid(HOME)).toBe(paid.home)
      await expectEqual(holder)
    }, 150_000)

    it('declines what lies on a chain that does not answer, and pays from the other', async () => {
      const holder = await newHolder('100')
      await fund(holder.address, HOME, '10')
      await awaitBooked(holder.token, HOME, 10_000_000n)
      world.silence(AWAY, true)
      expect((await authorize(holder.card, 2_000)).result).toBe('INSUFFICIENT_FUNDS')
      const purchase = await authorize(holder.card, 1_000)
      expect(purchase.result).toBe('APPROVED')
      world.silence(AWAY, false)
      await expect
        .poll(async () => (await authorize(holder.card, 6_000)).result, { timeout: 60_000, interval: 2_000 })
        .toBe('APPROVED')
      await expect.poll(async () => (await readEscrow(holder.token)).amount, SLOW).toBe('70')
      await expectEqual(holder)
    }, 150_000)

    it('gives back what arrives too late for its purchase', async () => {
      const holder = await newHolder('200')
      world.killAt(AWAY, 'before broadcast', 1)
      const late = await deadline(holder)
      expect(late).not.toBe('APPROVED')
      await world.restart()
      await awaitBooked(holder.token, AWAY, 200_000_000n)
      expect(await readEscrow(holder.token)).toEqual({ asset: 'USDC', amount: '0' })
      await expectEqual(holder)
    }, 150_000)

    /** A purchase whose answer nobody waits for again. */
    const deadline = ({ card }: Holder) =>
      authorize(card, 12_000).then(
        ({ result }) => result,
        () => 'none',
      )

    // Transactions of a new holder: the wallet's code, the pull, the escrow's code, the payment from it, the return of the rest.
    const nths = { pull: 2, payment: 4, return: 5 } as const
    const steps = (['pull', 'payment', 'return'] as const).flatMap((stage) =>
      (['before broadcast', 'after broadcast', 'at the receipt'] as const).map((step) => ({ stage, step })),
    )
    it.each(isPostgres ? steps : steps.slice(1, 2))(
      'pays once and returns the rest when the gateway is killed $step of the $stage',
      async ({ stage, step }) => {
        // A rest stays for 20 seconds: only the steps of its return wait for it.
        const cleared = stage === 'return' ? 10_000 : 12_000
        const holder = await newHolder('200')
        const paid = await readPaid(AWAY)
        const request = askForApproval(holder.card, 12_000)
        const id = randomUUID()
        const dead = world.killAt(AWAY, step, nths[stage])
        const pay = async () => {
          if ((await hook(request, id)).result !== 'APPROVED') return false
          const purchase = { token: request.token, card: holder.card, cents: 12_000 }
          await deliver(purchase, 'SETTLED', ['CLEARING', cleared])
          return true
        }
        const paying = pay().catch(() => undefined)
        await dead
        await paying
        await world.restart()
        // A purchase whose pull is still on its way is declined when it is asked for again, and pays nothing. A receipt may be read
        // more than once, so that a kill at one may come before the stage that it is named for.
        const isPaid = await pay()
        if (stage !== 'pull' && step !== 'at the receipt') expect(isPaid).toBe(true)
        const units = isPaid ? BigInt(cleared) * 10_000n : 0n
        await expect.poll(() => readPaid(AWAY), SLOW).toBe(paid + units)
        await awaitBooked(holder.token, AWAY, 200_000_000n - units)
        await expect.poll(() => readEscrow(holder.token), SLOW).toEqual({ asset: 'USDC', amount: '0' })
        expect(await readPaid(AWAY)).toBe(paid + units)
        await expectEqual(holder)
      },
      240_000,
    )

    it.runIf(canVerify)('leaves books that a stranger recomputes', () => world.expectRecomputed(), 60_000)
  })
})
