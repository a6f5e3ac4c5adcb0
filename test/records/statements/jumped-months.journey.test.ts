/** Statements of a sandbox whose calendar was set ahead, over HTTP and by the command line. */
import { mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { statementView } from '../../../src/records/statements/read-statement.ts'
import { bursar } from '../../commands/bursar.ts'
import { overBothEngines } from '../../journeys/both-engines.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'

const DAY = 86_400
const payee = `0x${'00'.repeat(18)}beef`

overBothEngines('statements after a jump of the calendar', { RATE_GUESTS: '1000/60' }, ({ gateway }) => {
  const advance = async (seconds: number) => {
    const { body } = await requestJson(gateway().origin, 'POST', '/sandbox/clock', {
      body: { advance: seconds },
    })
    return new Date(String(body.now))
  }
  const read = async (person: Person, month: string) =>
    statementView.parse((await person.send('GET', `/api/statements/${month}`)).body)
  const monthOf = (time: Date) => time.toISOString().slice(0, 7)

  it('have what a schedule paid in the month in which it was due', async () => {
    const owner = await newGuest(gateway().origin)
    const before = monthOf(await advance(0))
    const made = await owner.send('POST', '/api/schedules', {
      operation: 'wallets.transfer',
      input: { destination: payee, amount: '1.25', token: 'USDC' },
      every: { unit: 'month', on: 31 },
    })
    expect(made.status).toBe(200)
    // To each due time of two months, and a minute on.
    const months: string[] = []
    for (let count = 0; count < 2; count += 1) {
      const { body } = await owner.send('GET', `/api/schedules/${String(made.body.scheduleId)}`)
      const dueAt = Date.parse(String(body.nextAt))
      const now = (await advance(0)).getTime()
      months.push(monthOf(await advance(Math.ceil((dueAt - now) / 1000) + 60)))
      const month = months.at(-1) ?? ''
      const paid = async () =>
        (await read(owner, month)).movements.filter(
          ({ amount, direction }) => direction === 'out' && amount === '1.25',
        )
      await expect.poll(async () => (await paid()).length, { timeout: 30_000 }).toBe(1)
      expect((await paid())[0]?.at.slice(0, 7)).toBe(month)
    }
    expect(new Set(months).size).toBe(2)
    await advance(40 * DAY)
    const all = [...new Set([before, ...months, monthOf(await advance(0))])]
    const statements = await Promise.all(all.map((month) => read(owner, month)))
    const usdc = statements.map(({ balances }) => balances.find(({ asset }) => asset === 'USDC'))
    for (const [index, balance] of usdc.entries())
      if (index > 0) expect(balance?.opening).toBe(usdc[index - 1]?.closing)
    const found = statements.flatMap(({ movements }) => movements.filter(({ amount }) => amount === '1.25'))
    expect(found).toHaveLength(2)
  })

  it('are written by the command line, into a file that is never overwritten', async () => {
    const { origin } = gateway()
    const owner = await newGuest(origin)
    const month = monthOf(await advance(0))
    const env = { BURSAR_URL: origin, BURSAR_SESSION: owner.token }
    const printed = await bursar(['statement', month], env)
    expect([printed.code, printed.err]).toEqual([0, ''])
    expect(statementView.parse(JSON.parse(printed.out)).period).toBe(month)
    const starts = { csv: 'id,', ofx: '<?xml', camt: '<?xml', hledger: ';', pdf: '%PDF-' }
    const directory = mkdtempSync(join(tmpdir(), 'statement-'))
    for (const [format, start] of Object.entries(starts)) {
      const out = join(directory, format)
      expect(await bursar(['statement', month, '--format', format, '--out', out], env)).toMatchObject({
        code: 0,
      })
      expect(readFileSync(out, 'utf8').slice(0, 5)).toContain(start)
      expect(statSync(out).mode & 0o777).toBe(0o600)
    }
    const again = await bursar(['statement', month, '--out', join(directory, 'csv')], env)
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('exists')])
    const wrong = await bursar(['statement', '2026-13'], env)
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('must be a month')])
    const unknown = await bursar(['statement', month, '--format', 'doc'], env)
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('is no format')])
    const signedOut = await bursar(['statement', month], { BURSAR_URL: origin, BURSAR_SESSION: 'nothing' })
    expect([signedOut.code, signedOut.err]).toEqual([1, expect.stringContaining('bursar login')])
  })
})
