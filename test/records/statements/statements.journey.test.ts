/** Statements over HTTP, of an account that paid in every way: each format adds up, and hledger accepts its journal. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { create } from 'xmlbuilder2'
import { z } from 'zod'
import { peggedCurrency } from '../../../src/records/statements/ledgers.ts'
import { statementView } from '../../../src/records/statements/read-statement.ts'
import { sharedGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person } from '../../journeys/people.ts'

const hasHledger = spawnSync('hledger', ['--version']).status === 0
if (!hasHledger) process.stderr.write('No hledger here: its judgement of a journal is not tested.\n')

const hasPoppler = spawnSync('pdftotext', ['-v']).status === 0
if (!hasPoppler) process.stderr.write('No pdftotext here: the text of PDF statements is not tested.\n')

const hasXmllint = spawnSync('xmllint', ['--version']).status === 0
if (!hasXmllint) process.stderr.write('No xmllint here: the structure of camt.053 is not tested.\n')

/** Signed units of the ninth digit, of a decimal with or without a sign. */
function toUnits(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.replace(/^[+-]/, '').split('.')
  const units = BigInt(whole + fraction.padEnd(9, '0'))
  return decimal.startsWith('-') ? -units : units
}

/** The values of a tag, in their order: a reader of OFX that knows nothing of the one that writes it. */
const valuesOf = (text: string, tag: string) =>
  [...text.matchAll(new RegExp(`<${tag}>([^<]*)`, 'g'))].map((match) => match[1]?.trim() ?? '')

/** Texts that are markup somewhere. */
const LIES = '=cmd|x ; y <b>&"\u202e] a:b'

/** A contact's name with the markup of every format, and the address that it stands for. */
const LIAR = '=HYPERLINK("x") ; y | <b>&]]>,a:b'
const PAID = `0x${'7'.repeat(40)}`

describe('statements', () => {
  const origin = sharedGateway()
  const month = new Date().toISOString().slice(0, 7)
  let owner: Person
  const read = async (accept: string, period = month, query = '') => {
    const response = await fetch(`${origin}/api/statements/${period}${query}`, {
      headers: { accept, authorization: `Bearer ${owner.token}` },
    })
    return { response, status: response.status, type: response.headers.get('content-type') }
  }
  const readJson = async (period = month) =>
    statementView.parse(await (await read('application/json', period)).response.json())

  beforeAll(async () => {
    owner = await newGuest(origin)
    const { body: list } = await owner.send('GET', '/api/cards')
    const [card] = z.array(z.object({ id: z.string() })).parse(list.cards)
    const bought = { cardId: card?.id, amount: '3.50', merchant: LIES }
    expect((await owner.send('POST', '/sandbox/authorizations', bought)).status).toBe(200)
    const url = `${origin}/sandbox/sellers/refunds`
    const { body: purchase } = await owner.send('POST', '/api/purchases', {
      url,
      maxAmount: '0.05',
      purpose: LIES,
    })
    expect(purchase).toMatchObject({ status: 'undelivered' })
    const { body: recourse } = await owner.send('POST', '/api/recourse', {
      object: { kind: 'purchase', id: purchase.purchaseId },
      reason: 'not_delivered',
    })
    const SLOW = { timeout: 30_000, interval: 200 }
    await vi.waitFor(async () => {
      const { body } = await owner.send('GET', `/api/recourse/${String(recourse.recourseId)}`)
      expect(body.status).toBe('recovered')
    }, SLOW)
    const contact = { name: LIAR, addresses: [{ address: PAID }] }
    expect((await owner.send('POST', '/api/contacts', contact)).status).toBe(200)
    const transfer = { destination: PAID, amount: '2.25', token: 'USDC', signature: 'sandbox', memo: LIES }
    expect((await owner.send('POST', '/api/wallets/transfer', transfer)).status).toBe(200)
    const { body: recipient } = await owner.send('POST', '/api/banking/recipients', {
      currency: 'EUR',
      name: 'Emmy Noether',
      country: 'DE',
      account: { iban: 'DE89370400440532013000' },
    })
    const payout = { recipientId: recipient.id, amount: '100', asset: 'USD', reference: 'Rent May' }
    expect((await owner.send('POST', '/api/banking/payouts', payout)).status).toBe(200)
    await vi.waitFor(async () => {
      const categories = (await readJson()).movements.map(({ category }) => category)
      expect(categories).toEqual(expect.arrayContaining(['payout', 'card', 'x402', 'deposit', 'transfer']))
    }, SLOW)
  }, 180_000)

  it('keep what was noted with a payment', async () => {
    const { movements } = await readJson()
    const paid = movements.find(({ category }) => category === 'transfer')
    expect(paid?.memo).toBe(LIES.replace('\u202e', ''))
  })

  it('add up: what was there and what moved is what is there', async () => {
    const units = (decimal: string) => {
      const [whole = '0', fraction = ''] = decimal.split('.')
      return BigInt(whole + fraction.padEnd(9, '0'))
    }
    const addUp = async (period: string) => {
      const { balances, movements } = await readJson(period)
      for (const { asset, opening, closing } of balances) {
        const moved = movements
          .filter((movement) => movement.asset === asset)
          .reduce((sum, { direction, amount }) => sum + (direction === 'in' ? 1n : -1n) * units(amount), 0n)
        expect([asset, units(opening) + moved]).toEqual([asset, units(closing)])
      }
      return balances
    }
    const now = await addUp(month)
    expect(now.length).toBeGreaterThan(1)
    const today = new Date()
    const aYearAgo = new Date(today.getTime() - 364 * 86_400_000).toISOString().slice(0, 10)
    const year = await addUp(`${aYearAgo}..${today.toISOString().slice(0, 10)}`)
    // Before it there was no account.
    expect(year.map(({ opening }) => opening)).toEqual(year.map(() => '0'))
    expect(year.map(({ asset, closing }) => [asset, closing])).toEqual(
      now.map(({ asset, closing }) => [asset, closing]),
    )
  })

  it('tell every movement once, with its object, its category and what it returns', async () => {
    const { movements } = await readJson()
    const names = movements.map(({ id, asset }) => `${id} ${asset}`)
    expect(new Set(names).size).toBe(names.length)
    expect(movements.find(({ category }) => category === 'payout')).toMatchObject({
      direction: 'out',
      amount: '100',
      counterparty: 'Emmy Noether',
      object: { kind: 'payout' },
    })
    const paid = movements.find(({ object, direction }) => object.kind === 'purchase' && direction === 'out')
    expect(paid).toMatchObject({ amount: '0.01', asset: 'USDC', rate: '1', usd: '0.01' })
    expect(movements).toContainEqual(
      expect.objectContaining({ direction: 'in', amount: '0.01', refundOf: paid?.object }),
    )
    expect(movements.filter(({ object }) => object.kind === 'card_transaction').length).toBeGreaterThan(0)
  })

  it('of another month have nothing, and of days what moved on them', async () => {
    expect(await readJson('2020-02')).toMatchObject({ movements: [], balances: [] })
    const today = new Date().toISOString().slice(0, 10)
    expect((await readJson(`${today}..${today}`)).movements.length).toBeGreaterThan(0)
    for (const wrong of ['2026-13', '2026-02-30..2026-03-01', '2026-03-02..2026-03-01', 'now'])
      expect((await read('application/json', wrong)).status).toBe(400)
  })

  it('are for their own account only', async () => {
    const other = await newGuest(origin)
    const { body } = await other.send('GET', `/api/statements/${month}`)
    expect(statementView.parse(body).movements.filter(({ category }) => category === 'payout')).toEqual([])
    expect((await fetch(`${origin}/api/statements/${month}`)).status).toBe(401)
  })

  it('are written as camt.053 whose entries add up', async () => {
    const { response, type } = await read('application/xml')
    expect(type).toContain('application/xml')
    const camt = z
      .object({ Document: z.object({ BkToCstmrStmt: z.object({ Stmt: z.array(z.looseObject({})) }) }) })
      .parse(create(await response.text()).end({ format: 'object' }))
    const amount = z.object({ '#': z.string() })
    const entry = z.object({ Amt: amount, CdtDbtInd: z.enum(['CRDT', 'DBIT']) })
    const many = <T extends z.ZodType>(of: T) =>
      z.union([z.array(of), of.transform((one) => [one])]).optional()
    for (const each of camt.Document.BkToCstmrStmt.Stmt) {
      const { Bal, Ntry } = z
        .object({ Bal: z.array(z.object({ Amt: amount })), Ntry: many(entry) })
        .parse(each)
      const [opening = 0, closing = 0] = Bal.map(({ Amt }) => Math.round(Number(Amt['#']) * 100_000))
      const entries = (Ntry ?? []) as { Amt: { '#': string }; CdtDbtInd: string }[]
      const moved = entries.reduce(
        (sum, one) => sum + (one.CdtDbtInd === 'CRDT' ? 1 : -1) * Math.round(Number(one.Amt['#']) * 100_000),
        0,
      )
      expect(opening + moved).toBe(closing)
    }
  })

  it('are written as OFX 2.2 that ends at the closing balance', async () => {
    const { response, type } = await read('application/x-ofx')
    expect(type).toContain('application/x-ofx')
    const ofx = await response.text()
    expect(ofx).toContain('OFXHEADER="200"')
    const { balances } = await readJson()
    const usdc = balances.find(({ asset }) => asset === 'USDC')
    expect(ofx).toContain(`<BALAMT>${usdc?.closing}</BALAMT>`)
    expect(ofx).not.toContain('<b>')
  })

  it('say the same to the last digit in every format', async () => {
    const { balances, movements } = await readJson()
    const text = async (accept: string) => (await read(accept)).response.text()
    const ofx = await text('application/x-ofx')
    const blocks = ofx.split('<STMTTRNRS>').slice(1)
    const seen = new Map(
      blocks.map((block) => {
        const asset = valuesOf(block, 'ACCTID')[0]?.split('-')[0] ?? ''
        const moved = valuesOf(block, 'TRNAMT').reduce((sum, amount) => sum + toUnits(amount), 0n)
        const ids = valuesOf(block, 'FITID')
        expect(new Set(ids).size).toBe(ids.length)
        return [asset, { moved, closing: toUnits(valuesOf(block, 'BALAMT')[0] ?? '') }] as const
      }),
    )
    const journal = await text('text/x-hledger')
    const csv = (await text('text/csv')).split('\r\n').filter((row) => row !== '')
    expect(csv).toHaveLength(movements.length + 1)
    for (const { asset, opening, closing } of balances) {
      const own = movements.filter((movement) => movement.asset === asset)
      const moved = own.reduce(
        (sum, { direction, amount }) => sum + toUnits(direction === 'in' ? amount : `-${amount}`),
        0n,
      )
      expect([asset, toUnits(opening) + moved]).toEqual([asset, toUnits(closing)])
      expect(journal).toContain(`= ${closing} `)
      // Shares have no currency, which OFX needs.
      if (peggedCurrency(asset) !== null)
        expect([asset, seen.get(asset)]).toEqual([asset, { moved, closing: toUnits(closing) }])
    }
    expect(seen.size).toBe(balances.filter(({ asset }) => peggedCurrency(asset) !== null).length)
  })

  it.skipIf(!hasXmllint)('have the structure of camt.053.001.08, an empty one too', async () => {
    for (const period of [month, '2020-02']) {
      const xml = await (await read('application/xml', period)).response.text()
      const { status, stderr } = spawnSync(
        'xmllint',
        ['--noout', '--nonet', '--schema', 'test/records/statements/camt.053.001.08.xsd', '-'],
        { input: xml },
      )
      expect([period, status, stderr.toString()]).toEqual([period, 0, '- validates\n'])
    }
  })

  it('are written as CSV without formulas', async () => {
    const csv = await (await read('text/csv')).response.text()
    expect(csv).not.toMatch(/(^|,)"?[=+@-]cmd/m)
    expect(csv.split('\r\n')[0]).toContain('refundOf.id')
  })

  it('name contacts, whose names are text in every format', async () => {
    const { movements } = await readJson()
    expect(movements.find(({ category }) => category === 'transfer')).toMatchObject({
      counterparty: PAID,
      contact: LIAR,
    })
    const text = async (accept: string) => (await read(accept)).response.text()
    const csv = await text('text/csv')
    expect(csv).toContain('HYPERLINK')
    expect(csv).not.toMatch(/(^|,)"?=HYPERLINK/m)
    for (const type of ['application/xml', 'application/x-ofx']) {
      const written = await text(type)
      expect(written).toContain('HYPERLINK')
      expect(written).toContain(PAID)
      expect(written).not.toContain('<b>')
      expect(() => create(written)).not.toThrow()
    }
    const journal = await text('text/x-hledger')
    const line = journal.split('\n').find((one) => one.includes('HYPERLINK'))
    expect(line?.replace(/^\S+ \* \([^)]*\) /, '')).not.toMatch(/[;|]/)
    expect(journal).toContain(`payee:${PAID}`)
  })

  it('are written as PDF', async () => {
    const { response, type } = await read('application/pdf')
    expect(type).toBe('application/pdf')
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes.subarray(0, 5).toString()).toBe('%PDF-')
    writeFileSync('.build/statement.pdf', bytes)
  })

  it('tell who made each payment, and the decision on it, where a page for each is asked for', async () => {
    const { payments: none } = await readJson()
    expect(none).toBeUndefined()
    const answer = await (await read('application/json', month, '?pages=each')).response.json()
    const { movements, payments = [] } = statementView.parse(answer)
    const paid = movements.filter(({ direction }) => direction === 'out')
    expect(payments.map(({ id, asset }) => [id, asset])).toEqual(paid.map(({ id, asset }) => [id, asset]))
    const transfer = paid.find(({ category }) => category === 'transfer')
    expect(transfer?.decisionId).toMatch(/^dec_/)
    expect(payments.find(({ id }) => id === transfer?.id)).toMatchObject({
      agent: null,
      agreed: [],
      decision: { operation: 'wallets.transfer', verdict: 'allow', verified: true },
    })
    expect((await read('application/json', month, '?pages=all')).status).toBe(400)
  })

  it.skipIf(!hasPoppler)('are written as PDF with a page for each payment beside the summary', async () => {
    const answer = await (await read('application/json', month, '?pages=each')).response.json()
    const { payments = [], movements } = statementView.parse(answer)
    const directory = mkdtempSync(join(tmpdir(), 'statement-'))
    const pagesOf = async (query: string) => {
      const { response } = await read('application/pdf', month, query)
      const file = join(directory, `statement${query.length}.pdf`)
      writeFileSync(file, Buffer.from(await response.arrayBuffer()))
      writeFileSync('.build/statement-pages.pdf', readFileSync(file))
      const text = execFileSync('pdftotext', ['-layout', file, '-']).toString()
      return text.split('\f').slice(0, -1)
    }
    const summary = await pagesOf('')
    const all = await pagesOf('?pages=each')
    expect(all).toHaveLength(summary.length + payments.length)
    const flat = (text: string) => text.replaceAll(/\s+/g, ' ')
    for (const [index, payment] of payments.entries()) {
      const movement = movements.find(({ id, asset }) => id === payment.id && asset === payment.asset)
      const page = flat(all[summary.length + index] ?? '')
      expect(page).toContain(payment.id)
      expect(page).toContain(movement?.object.id)
      expect(page).toContain(movement?.decisionId ?? 'None was needed')
      if (movement?.transactionHash) expect(page).toContain(movement.transactionHash)
      if (payment.decision !== null) expect(page).toContain('Signed by this gateway, verified')
      expect(page).toContain(`Page ${summary.length + index + 1} of ${all.length}`)
    }
    const payout = all.find((page) => page.includes('Emmy Noether') && page.includes('Evidence'))
    expect(flat(payout ?? '')).toContain('Rent May')
    expect(flat(payout ?? '')).toContain('100 USD')
    // The names and texts of others are text there too.
    const named = all.find((page) => page.includes('HYPERLINK') && page.includes('Evidence'))
    expect(named).toContain(PAID)
    expect(flat(all.join(' '))).not.toContain('\u202e')
  })

  it.skipIf(!hasHledger)('are written as a journal that hledger accepts in its strict mode', async () => {
    const journal = await (await read('text/x-hledger')).response.text()
    const file = join(mkdtempSync(join(tmpdir(), 'statement-')), 'statement.journal')
    writeFileSync(file, journal)
    execFileSync('hledger', ['check', '--strict', '-f', file])
    const balance = execFileSync('hledger', [
      'balance',
      '-f',
      file,
      'assets:bursar:USD$',
      '--no-total',
      '-O',
      'csv',
    ])
    const usd = (await readJson()).balances.find(({ asset }) => asset === 'USD')
    expect(balance.toString().replaceAll(/[",]/g, '')).toContain(`${Number(usd?.closing).toFixed(2)}`)
  })
})
