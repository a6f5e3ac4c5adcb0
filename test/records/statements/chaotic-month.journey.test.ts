/**
 * The statement of a month in which everything happened, in every format: each adds up to the last unit, all say the same, the next
 * month goes on where this one ended, and nothing that happens later changes it.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { createTestDatabase, longestEngines, testServerUrl } from '../../engines.ts'
import { forManyTests, type Gateway, startGateway } from '../../journeys/gateway.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'
import { type ChaoticMonth, liveChaoticMonth } from './chaotic-month.ts'
import {
  type Book,
  openJournal,
  readCamt,
  readCsv,
  readJson,
  readOfx,
  readPdf,
  toUnits,
} from './read-formats.ts'

const hasProgram = (name: string, flag: string) => {
  const isThere = spawnSync(name, [flag]).status === 0
  if (!isThere) process.stderr.write(`No ${name} here: what it says of the chaotic month is not tested.\n`)
  return isThere
}
const hasHledger = hasProgram('hledger', '--version')
const hasPoppler = hasProgram('pdftotext', '-v')
const hasXmllint = hasProgram('xmllint', '--version')

const chains = ['base-sepolia', 'arbitrum-sepolia'] as const
/** What OFX and camt have. */
const currencies = ['EURC', 'PYUSD', 'USD', 'USDC', 'USDT']
const shares = ['AAPL', 'MSFT', 'O', 'VTI']
/** The last digit of an amount in camt, in billionths. */
const CAMT_UNIT = 10_000n

/** What moved, but for what depends on rates, prices and the calendar: direction, amount, asset, category, payment that it returns. */
const expected = [
  ['in', '1000', 'USDC', 'deposit', null],
  ['in', '500', 'EURC', 'deposit', null],
  ['in', '250', 'USDT', 'deposit', null],
  ['in', '250', 'PYUSD', 'deposit', null],
  ['in', '2000', 'USDC', 'deposit', null],
  ['in', '40.000001', 'USDC', 'deposit', null],
  ['in', '250.25', 'USDC', 'deposit', null],
  ['in', '120.55', 'EURC', 'deposit', null],
  ['in', '900000', 'USD', 'deposit', null],
  ['in', '31.07', 'USD', 'deposit', null],
  ['out', '31.07', 'USD', 'deposit_return', null],
  ['in', '7.654321', 'USDC', 'deposit', null],
  ['in', '0.05', 'USDC', 'deposit', null],
  ['in', '11.5', 'EURC', 'transfer', null],
  ['out', '12.345678', 'USDC', 'transfer', null],
  ['out', '40', 'USDC', 'transfer', null],
  ['out', '5.000001', 'USDC', 'transfer', null],
  ['out', '0.01', 'USDC', 'x402', null],
  ['out', '0.01', 'USDC', 'x402', null],
  ['out', '0.01', 'USDC', 'x402', null],
  ['out', '0.01', 'USDC', 'x402', null],
  ['out', '0.05', 'USDC', 'x402', null],
  ['out', '0.001', 'USDC', 'x402', null],
  ['out', '0.001234', 'USDC', 'x402', null],
  ['out', '0.0005', 'USDC', 'x402', null],
  ['out', '0.0005', 'USDC', 'x402', null],
  ['out', '0.0005', 'USDC', 'x402', null],
  ['in', '0.01', 'USDC', 'deposit', 'purchase'],
  ['out', '25.5', 'USDC', 'card', null],
  ['in', '5.25', 'USD', 'card', 'card_transaction'],
  ['out', '10', 'USDC', 'card', null],
  ['out', '2', 'USDC', 'card', null],
  ['out', '3.33', 'USDC', 'card', null],
  ['out', '9.01', 'USDC', 'card', null],
  ['in', '9.01', 'USD', 'card', 'card_transaction'],
  ['out', '9.02', 'USDC', 'card', null],
  ['out', '9.03', 'USDC', 'card', null],
  ['in', '9.03', 'USD', 'card', 'card_transaction'],
  ['out', '9.03', 'USD', 'card', null],
  ['out', '250', 'PYUSD', 'card', null],
  ['out', '50', 'USDT', 'card', null],
  ['out', '100.01', 'USD', 'payout', null],
  ['out', '50.02', 'USD', 'payout', null],
  ['in', '50.02', 'USD', 'payout', 'payout'],
  ['out', '33.04', 'USD', 'payout', null],
  ['out', '100', 'USD', 'invest', null],
  ['in', '33.33', 'USD', 'invest', null],
  ['out', '60.000003', 'USDC', 'swap', null],
  ['out', '50', 'USDC', 'swap', null],
  ['in', '50', 'USDC', 'swap', null],
  ['out', '0.005', 'USDC', 'swap', null],
  ['out', '1.250001', 'USDC', 'transfer', null],
  ['out', '1.250001', 'USDC', 'transfer', null],
  ['in', '9.000009', 'USDC', 'deposit', null],
  ['out', '7', 'USDC', 'swap', null],
  ['in', '7', 'USDC', 'swap', null],
]

const view = z.looseObject({
  movements: z.array(
    z.looseObject({
      direction: z.string(),
      amount: z.string(),
      asset: z.string(),
      category: z.string(),
      counterparty: z.string().nullable(),
      fee: z.string(),
      refundOf: z.looseObject({ kind: z.string() }).nullable(),
    }),
  ),
})

const sum = (units: Iterable<bigint>) => [...units].reduce((total, each) => total + each, 0n)

describe.each(longestEngines)('the statement of a chaotic month on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    const nodes: AnvilProcess[] = []
    let drop = async () => {}
    let gateway: Gateway
    let lived: ChaoticMonth

    beforeAll(async () => {
      for (const name of chains)
        nodes.push(await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, name))
      const database = isPostgres ? await createTestDatabase(testServerUrl ?? '') : null
      drop = async () => database?.drop()
      gateway = await startGateway({
        ...forManyTests,
        CHAINS: chains.join(','),
        CHAIN_RPC_URL_BASE_SEPOLIA: nodes[0]?.url ?? '',
        CHAIN_RPC_URL_ARBITRUM_SEPOLIA: nodes[1]?.url ?? '',
        LOG_LEVEL: 'silent',
        ...(database === null ? {} : { DATABASE_URL: database.url }),
      })
      lived = await liveChaoticMonth(gateway.origin, nodes[0]?.url ?? '')
    }, 600_000)
    afterAll(async () => {
      await lived?.close()
      await gateway?.stop()
      for (const node of nodes) await node.stop()
      await drop()
    }, 60_000)

    const fetchAs = async (accept: string, period: string) => {
      const response = await fetch(`${gateway.origin}/api/statements/${period}`, {
        headers: { accept, authorization: `Bearer ${lived.owner.token}` },
      })
      expect([accept, response.status]).toEqual([accept, 200])
      return Buffer.from(await response.arrayBuffer())
    }
    const read = async (accept: string, period: string) => (await fetchAs(accept, period)).toString()
    const json = async (period: string) => readJson(await read('application/json', period))
    const inOrder = ({ entries }: Book, assets: readonly string[]) =>
      assets.flatMap((asset) =>
        entries.filter((entry) => entry.asset === asset).map(({ units }) => `${asset} ${units}`),
      )
    const expectAddedUp = ({ opening, closing, entries }: Book) => {
      expect(opening?.size).toBe(closing?.size)
      for (const [asset, units] of opening ?? []) {
        const moved = sum(entries.filter((entry) => entry.asset === asset).map((entry) => entry.units))
        expect([asset, units + moved]).toEqual([asset, closing?.get(asset)])
      }
      for (const { asset } of entries) expect(opening?.has(asset)).toBe(true)
    }
    const withoutNothing = (amounts: ReadonlyMap<string, bigint> | null) =>
      new Map([...(amounts ?? [])].filter(([, units]) => units !== 0n))

    it('has everything that moved, once, and nothing of what was refused, declined or failed', async () => {
      const { movements } = view.parse(JSON.parse(await read('application/json', lived.month)))
      // A large order fills by 10,000 dollars a second, until it is canceled.
      const isLarge = ({ category, counterparty }: { category: string; counterparty: string | null }) =>
        category === 'invest' && counterparty === 'MSFT'
      const parts = movements.filter(isLarge)
      const paid = parts.filter(({ asset }) => asset === 'USD')
      expect(parts).toHaveLength(2 * paid.length)
      expect(paid[0]).toMatchObject({ direction: 'out', amount: '10000' })
      const seen = movements
        .filter((movement) => !isLarge(movement))
        .map(({ direction, amount, asset, category, refundOf }) =>
          JSON.stringify([direction, amount, asset, category, refundOf?.kind ?? null]),
        )
      const left = [...seen]
      for (const one of expected) {
        const at = left.indexOf(JSON.stringify(one))
        expect([one, at >= 0]).toEqual([one, true])
        left.splice(at, 1)
      }
      // By rates: two deposits, a purchase in euros, what a swap brought. By prices: shares. By the calendar: dividends.
      const others = left.map((one) => z.array(z.string().nullable()).parse(JSON.parse(one)))
      const isDividend = ([, , , category]: readonly unknown[]) => category === 'dividend'
      expect(
        others
          .filter((one) => !isDividend(one))
          .map(([direction, , asset, category]) => `${direction} ${asset} ${category}`)
          .sort(),
      ).toEqual([
        'in EURC swap',
        'in USDC deposit',
        'in USDC deposit',
        'in VTI invest',
        'out AAPL invest',
        'out USDC card',
      ])
      expect(others.filter(isDividend).length).toBeGreaterThan(0)
      for (const { category, counterparty } of movements)
        if (category === 'dividend') expect(counterparty).toMatch(/^(AAPL|O|VTI)$/)
      expect(movements.find(({ amount }) => amount === '0.005')).toMatchObject({ fee: '0.005' })
    })

    it('adds up in JSON, and has in CSV the same movements', async () => {
      const book = await json(lived.month)
      expectAddedUp(book)
      expect([...(book.closing?.keys() ?? [])].sort()).toEqual([...currencies, ...shares].sort())
      expect(readCsv(await read('text/csv', lived.month)).entries).toEqual(book.entries)
    })

    it('goes on in the next month, is not changed by what came later, and ends with what the account has', async () => {
      const [month, next] = [await json(lived.month), await json(lived.next)]
      expect(readJson(JSON.stringify(lived.early))).toEqual(month)
      expectAddedUp(next)
      expect(withoutNothing(next.opening)).toEqual(withoutNothing(month.closing))
      const both = await json(`${lived.month}-01..${lived.next}-28`)
      expect(both.entries).toEqual([...month.entries, ...next.entries])
      expect([withoutNothing(both.opening), withoutNothing(both.closing)]).toEqual([
        withoutNothing(month.opening),
        withoutNothing(next.closing),
      ])
      expect(withoutNothing(next.closing)).toEqual(await readHoldings())
    })

    /** Everything that the account has now, by its wallets, its purses and its portfolio; what a chain has lost too. */
    const readHoldings = async () => {
      const amount = z.string().default('0')
      const wallets = z
        .looseObject({
          balances: z.array(z.looseObject({ token: z.string(), amount, held: amount, shortfall: amount })),
          purse: z.array(z.looseObject({ asset: z.string(), amount })),
          escrow: z.array(z.looseObject({ asset: z.string(), amount })),
        })
        .parse((await lived.owner.send('GET', '/api/wallets')).body)
      const portfolio = z
        .looseObject({ cash: amount, holdings: z.array(z.looseObject({ symbol: z.string(), qty: amount })) })
        .parse((await lived.owner.send('GET', '/api/investing/portfolio')).body)
      const rows = [
        ...wallets.balances.flatMap(({ token, amount, held, shortfall }) =>
          [amount, held, shortfall].map((each) => [token, each] as const),
        ),
        ...[...wallets.purse, ...wallets.escrow].map(({ asset, amount }) => [asset, amount] as const),
        ['USD', portfolio.cash] as const,
        ...portfolio.holdings.map(({ symbol, qty }) => [symbol, qty] as const),
      ]
      const names = new Set(rows.map(([asset]) => asset))
      return withoutNothing(
        new Map(
          [...names].map((name) => [
            name,
            sum(rows.filter(([asset]) => asset === name).map(([, each]) => toUnits(each))),
          ]),
        ),
      )
    }

    it('says the same in OFX, of everything but shares', async () => {
      const [book, ofx] = [await json(lived.month), readOfx(await read('application/x-ofx', lived.month))]
      expect([...(ofx.closing?.keys() ?? [])].sort()).toEqual(currencies)
      expect(inOrder(ofx, currencies)).toEqual(inOrder(book, currencies))
      for (const [asset, units] of ofx.closing ?? []) {
        expect([asset, units]).toEqual([asset, book.closing?.get(asset)])
        const moved = sum(ofx.entries.filter((entry) => entry.asset === asset).map((entry) => entry.units))
        expect([asset, units - moved]).toEqual([asset, book.opening?.get(asset)])
      }
      const next = readOfx(await read('application/x-ofx', lived.next))
      for (const [asset, units] of next.closing ?? []) {
        const moved = sum(next.entries.filter((entry) => entry.asset === asset).map((entry) => entry.units))
        expect([asset, units - moved]).toEqual([asset, ofx.closing?.get(asset)])
      }
    })

    it('says the same in camt, whose amounts have five digits', async () => {
      const [book, camt] = [await json(lived.month), readCamt(await read('application/xml', lived.month))]
      expectAddedUp(camt)
      expect([...(camt.closing?.keys() ?? [])].sort()).toEqual(currencies)
      const round = (units: bigint) => ((units + CAMT_UNIT / 2n) / CAMT_UNIT) * CAMT_UNIT
      for (const asset of currencies) {
        const [own, exact] = [camt, book].map(({ entries }) =>
          entries.filter((entry) => entry.asset === asset),
        )
        expect([asset, own?.length]).toEqual([asset, exact?.length])
        let [shown, running] = [camt.opening?.get(asset) ?? -1n, book.opening?.get(asset) ?? -1n]
        expect(shown).toBe(round(running))
        for (const [index, { units }] of (exact ?? []).entries()) {
          running += units
          shown += own?.[index]?.units ?? 0n
          expect([asset, index, shown]).toEqual([asset, index, round(running)])
        }
      }
      const next = readCamt(await read('application/xml', lived.next))
      expectAddedUp(next)
      expect(withoutNothing(next.opening)).toEqual(withoutNothing(camt.closing))
    })

    it.skipIf(!hasXmllint)('has the structure of camt.053.001.08', async () => {
      for (const period of [lived.month, lived.next]) {
        const { status, stderr } = spawnSync(
          'xmllint',
          ['--noout', '--nonet', '--schema', 'test/records/statements/camt.053.001.08.xsd', '-'],
          { input: await read('application/xml', period) },
        )
        expect([period, status, stderr.toString()]).toEqual([period, 0, '- validates\n'])
      }
    })

    it.skipIf(!hasHledger)(
      'is a journal that hledger accepts in its strict mode, and that says the same',
      async () => {
        const books: Book[] = []
        for (const period of [lived.month, lived.next]) {
          const journal = openJournal(await read('text/x-hledger', period))
          expect(journal.check()).toBe('')
          const [book, own] = [await json(period), journal.read()]
          expect(own.entries).toEqual(book.entries)
          for (const name of ['opening', 'closing'] as const)
            expect([name, withoutNothing(own[name])]).toEqual([name, withoutNothing(book[name])])
          books.push(own)
        }
        expect(withoutNothing(books[1]?.opening ?? null)).toEqual(withoutNothing(books[0]?.closing ?? null))
      },
    )

    it.skipIf(!hasHledger)(
      'has no income in its journal that is none: exchanges, and what is returned',
      async () => {
        const journal = openJournal(await read('text/x-hledger', lived.month))
        expect(journal.accounts().filter((name) => name.startsWith('income:'))).toEqual([
          'income:deposit',
          'income:dividend',
          'income:transfer',
        ])
        const exchanged = journal.balanceOf('^equity:conversion$')
        // Between two chains, what left has come again but for its fee.
        expect(exchanged.get('USDC')).toBe(toUnits('60.000003'))
        expect(journal.balanceOf('^expenses:swap$')).toEqual(new Map([['USDC', toUnits('0.005')]]))
        expect(journal.balanceOf('^expenses:x402$')).toEqual(
          new Map([['USDC', toUnits('0.093734') - toUnits('0.01')]]),
        )
        expect(journal.balanceOf('^expenses:payout$')).toEqual(new Map([['USD', toUnits('133.05')]]))
        expect(journal.balanceOf('^expenses:card$').get('USD')).toBe(-toUnits('14.26'))
      },
    )

    it.skipIf(!hasPoppler)(
      'says the same in print, where every line and every total is found again',
      async () => {
        const books: Book[] = []
        for (const period of [lived.month, lived.next]) {
          const bytes = await fetchAs('application/pdf', period)
          // To look at.
          writeFileSync(`.build/statement-${period}.pdf`, bytes)
          const [book, pdf] = [await json(period), readPdf(bytes)]
          expectAddedUp(pdf)
          expect(pdf.entries).toEqual(book.entries)
          expect([pdf.opening, pdf.closing]).toEqual([book.opening, book.closing])
          books.push(pdf)
        }
        expect(withoutNothing(books[1]?.opening ?? null)).toEqual(withoutNothing(books[0]?.closing ?? null))
      },
    )
  })
})
