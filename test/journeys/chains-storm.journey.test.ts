/**
 * A storm over two chains from one seed: swaps, bridges both ways, transfers and purchases that move their money first, beside each other,
 * while the bridge is late or loses messages and the gateway is killed at random steps. Whatever is answered, each payment reaches its
 * payee once or never, no budget is exceeded, and the books are what both chains show. STORM_OPERATIONS sets the size, STORM_SEED what
 * is done.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { getAddress } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Address } from '../../src/providers/chain/port.ts'
import { longestEngines } from '../engines.ts'
import { type FlakySellers, startFlakySellers } from '../rails/buying/flaky-sellers.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type Seeded, seededBy } from '../simulator/seeded.ts'
import type { Step } from './chain-proxy.ts'
import { readAddress, tokenBalance } from './keyed-owners.ts'
import { type ChainName, chainNames, startTwoChains, type TwoChains } from './two-chains.ts'

const OPERATIONS = Number(process.env.STORM_OPERATIONS ?? 40)
const SEED = process.env.STORM_SEED ?? '1'
const CLIENTS = 4
const BUDGET = 400
const [HOME, AWAY] = chainNames
const STEPS: readonly Step[] = ['before broadcast', 'after broadcast', 'at the receipt']

type Kind = 'transfer' | 'purchase' | 'bridge' | 'swap'

interface Operation {
  readonly name: string
  readonly kind: Kind
  readonly path: string
  readonly body: object
  /** Whom nothing else pays. @property units what it gets, once or never. */
  readonly payee: { readonly chain: ChainName; readonly address: Address; readonly units: bigint } | null
  end: 'done' | 'refused' | 'open'
}

const text = z.string()

describe.each(longestEngines)('a storm over two chains on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    let world: TwoChains
    let sellers: ReadonlyMap<ChainName, FlakySellers>
    let key = ''
    let address: Address = '0x'

    beforeAll(async () => {
      world = await startTwoChains(isPostgres)
      const pairs = await Promise.all(
        chainNames.map(async (name) => [name, await startFlakySellers(world.urlOf(name), name)] as const),
      )
      sellers = new Map(pairs)
      const owner = await world.newGuest()
      address = await readAddress(owner)
      const { body } = await world.send(owner.token, 'POST', '/api/developer/keys', {
        name: 'Storm',
        scopes: ['purchases:pay', 'wallets:read', 'wallets:transfer', 'swaps:execute'],
        policy: {
          perTransaction: { max: '60' },
          dailyBudget: { max: String(BUDGET) },
          categories: { allow: ['x402', 'swap', 'transfer'] },
        },
      })
      key = String(body.key)
    }, 120_000)
    afterAll(async () => {
      for (const one of sellers?.values() ?? []) await one.close()
      await world?.stop()
    }, 60_000)

    const plan = (random: Seeded, at: number): Operation => {
      const kind = random.oneOf<Kind>(['transfer', 'purchase', 'purchase', 'bridge', 'swap'])
      const name = `${kind}-${at}`
      const chain = random.oneOf(chainNames)
      const units = BigInt(500_000 + random.below(24_500_000))
      const amount = (Number(units) / 1e6).toFixed(6)
      const payee = { chain, units, address: newPayee(`${SEED} ${name} ${isPostgres}`) }
      if (kind === 'transfer') {
        const body = { destination: payee.address, amount, token: 'USDC', chain, from: 'any' }
        return { name, kind, path: '/api/wallets/transfer', body, payee, end: 'open' }
      }
      if (kind === 'purchase') {
        sellers.get(chain)?.setTerms(name, { payTo: payee.address, amount: units.toString(), seconds: 600 })
        const url = `${sellers.get(chain)?.origin}/honest/${name}`
        return { name, kind, path: '/api/purchases', body: { url, maxAmount: '60' }, payee, end: 'open' }
      }
      const path = '/api/swaps/orders'
      if (kind === 'bridge') {
        const body = {
          sell: { chain, token: 'USDC', amount },
          buy: { chain: chain === HOME ? AWAY : HOME, token: 'USDC' },
        }
        return { name, kind, path, body, payee: null, end: 'open' }
      }
      const [sold, bought] = random.oneOf([
        ['USDC', 'EURC'],
        ['EURC', 'USDC'],
      ] as const)
      const body = { sell: { chain: HOME, token: sold, amount }, buy: { chain: HOME, token: bought } }
      return { name, kind, path, body, payee: null, end: 'open' }
    }

    /** Calls once, or asks what became of it. @returns how it ended, if it has. */
    const ask = async ({ name, path, body }: Operation): Promise<Operation['end']> => {
      const answer = await world
        .send(key, 'POST', path, body, { 'idempotency-key': `${SEED}-${name}` })
        .catch(() => undefined)
      if (answer === undefined || answer.status === 429) return 'open'
      // Killed before anything was written of it: its hold was given back, and every repeat says so.
      if (answer.status === 503 && /never sent/.test(String(answer.body.detail))) return 'refused'
      if (answer.status >= 500) return 'open'
      const { status, code, state } = z
        .looseObject({ status: z.unknown(), code: text.optional(), state: text.optional() })
        .parse(answer.body)
      if (code !== undefined) return /in_progress|pending/.test(code) ? 'open' : 'refused'
      const reached = String(state ?? status)
      if (/^(confirmed|delivered|undelivered)$/.test(reached)) return 'done'
      return /^(failed|refunded)$/.test(reached) ? 'refused' : 'open'
    }

    it('pays each at most once, within the budget, and leaves the books that the chains show', async () => {
      const random = seededBy(`chains ${SEED}`)
      const operations = Array.from({ length: OPERATIONS }, (_, at) => plan(random, at))
      const left = [...operations]
      let isOver = false
      let kills = 0

      const client = async () => {
        for (let next = left.shift(); next !== undefined; next = left.shift()) {
          for (let tries = 0; tries < 6 && next.end === 'open'; tries += 1) {
            next.end = await ask(next)
            if (next.end === 'open') await sleep(700)
          }
        }
      }
      const killer = async () => {
        const moods = seededBy(`kills ${SEED}`)
        while (!isOver) {
          await world.setMode(moods.oneOf(['normal', 'normal', 'late', 'lost'])).catch(() => {})
          const chain = moods.oneOf(chainNames)
          const dead = world.killAt(chain, moods.oneOf(STEPS), 1 + moods.below(3)).then(() => true)
          const isDead = await Promise.race([dead, sleep(4_000 + moods.below(3_000)).then(() => false)])
          // A cut whose step was not reached would come later; this one replaces it and never comes.
          void world.killAt(chain, 'before broadcast', 1e9)
          if (!isDead) await world.kill()
          kills += 1
          await world.restart()
        }
      }
      const killing = killer()
      await Promise.all(Array.from({ length: CLIENTS }, client))
      isOver = true
      await killing
      await world.setMode('normal')

      for (const each of operations)
        if (each.end === 'open')
          await expect
            .poll(async () => (each.end = await ask(each)), { timeout: 120_000, interval: 500 })
            .not.toBe('open')
      await sleep(3_000)

      const found = []
      for (const { name, payee, end } of operations) {
        if (payee === null) continue
        const paid = await world.readChain(payee.chain, payee.address)
        if (paid !== (end === 'done' ? payee.units : 0n)) found.push({ name, end, paid, units: payee.units })
      }
      expect(found).toEqual([])
      await world.expectEqual(key, address)
      await expectEqualEuros()
      const { body } = await world.send(key, 'GET', '/api/agents/self')
      const { usage } = z.looseObject({ usage: z.looseObject({ used: text }) }).parse(body)
      expect(Number(usage.used)).toBeLessThanOrEqual(BUDGET)
      const counts = { done: 0, refused: 0, open: 0 }
      for (const { end } of operations) counts[end] += 1
      process.stdout.write(
        `seed ${SEED}: ${OPERATIONS} operations, ${counts.done} done, ${counts.refused} refused, ${kills} kills\n`,
      )
      expect(counts.done).toBeGreaterThan(OPERATIONS / 4)
      expect(kills).toBeGreaterThan(2)
    }, 600_000)

    const expectEqualEuros = async () => {
      const { body } = await world.send(key, 'GET', '/api/wallets')
      const { balances } = z
        .looseObject({
          balances: z.array(z.looseObject({ token: text, chain: text, amount: text, held: text })),
        })
        .parse(body)
      const row = balances.find(({ token, chain }) => token === 'EURC' && chain === HOME)
      const booked = Math.round((Number(row?.amount ?? 0) + Number(row?.held ?? 0)) * 1e6)
      expect(BigInt(booked)).toBe(await tokenBalance(world.urlOf(HOME), 'EURC', address))
    }

    it('leaves books that a stranger recomputes', () => world.expectRecomputed(), 60_000)
  })
})

function newPayee(name: string): Address {
  return getAddress(`0x${createHash('sha256').update(name).digest('hex').slice(24)}`)
}
