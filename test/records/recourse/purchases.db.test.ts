/** Recourse on purchases: each way, and what sellers do to get around it. What came back is in the books once, and never too much. */
import { expect, it } from 'vitest'
import { pursePlace } from '../../../src/books/ledger/accounts.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { linkRefund } from '../../../src/records/recourse/link-refund.ts'
import { parseSteps } from '../../../src/records/recourse/store.ts'
import { viewRecourse } from '../../../src/records/recourse/view.ts'
import { onBothEngines } from '../../engines.ts'
import { openScene, PRICE, seller } from './scene.ts'

const DAY_S = 86_400
const refusesGoods = { answer: ({ method }: { method: string }) => (method === 'POST' ? 202 : 404) }

onBothEngines('recourse on a purchase', (database) => {
  const scene = (options = {}) => openScene(database(), { ...refusesGoods, ...options })
  const stepsOf = (recourse: Parameters<typeof parseSteps>[0]) =>
    parseSteps(recourse).map(({ action, outcome }) => `${action} ${outcome}`)

  it('makes a signed payment void, and its money is available again', async () => {
    const { buy, chain, key, readUnits, readUsed } = await scene()
    const { open, take, read } = await buy()
    expect(await readUnits(pursePlace(key.id))).toBe(600n)
    const recourse = await open('canceled')
    expect(recourse).toMatchObject({ status: 'recovered', route: 'cancel_authorization', recovered: PRICE })
    expect(stepsOf(recourse)).toEqual(['cancel_authorization waiting', 'cancel_authorization done'])
    expect(await readUnits(pursePlace(key.id))).toBe(700n)
    expect(await readUsed()).toBe(0n)
    await expect(take()).rejects.toThrow(/used or canceled/)
    expect(await read()).toMatchObject({ state: 'failed' })
    expect(await chain.readBalance('USDC', seller.address)).toBe(10_000n)
  })

  it('books whichever the chain has, where the seller and the payer press at once', async () => {
    const { buy, chain, key, readUnits } = await scene({ refundUrl: null })
    for (let round = 0; round < 6; round += 1) {
      const before = await readUnits(pursePlace(key.id))
      const earned = await chain.readBalance('USDC', seller.address)
      const { open, take, read } = await buy()
      const [recourse] = await Promise.all([open(), take().catch(() => undefined)])
      const isPaid = (await chain.readBalance('USDC', seller.address)) > earned
      expect((await read()).state).toBe(isPaid ? 'settled' : 'failed')
      expect(recourse.status).toBe(isPaid ? 'impossible' : 'recovered')
      expect(before - (await readUnits(pursePlace(key.id)))).toBe(isPaid ? PRICE : 0n)
    }
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('says that the seller was faster, and asks it for the money', async () => {
    const { buy, requests } = await scene()
    const { open, take, id } = await buy()
    await take()
    const recourse = await open()
    expect(stepsOf(recourse)).toEqual([
      'cancel_authorization waiting',
      'cancel_authorization raced',
      'present_again failed',
      'refund_request waiting',
    ])
    const request = requests.find(({ method }) => method === 'POST')
    expect(String(request?.url)).toBe('https://a.example.com/refund')
    expect(request?.headers['idempotency-key']).toBe(recourse.id)
    expect(JSON.parse(String(request?.body))).toEqual({
      purchase: id,
      evidence: 'signed.evidence',
      reason: 'not_delivered',
    })
  })

  it('ends recovered by goods that come when the payment is presented again', async () => {
    const { buy, readUsed } = await scene({ answer: () => 200 })
    const { open, settle, read } = await buy()
    await settle()
    const recourse = await open()
    expect(recourse).toMatchObject({ status: 'recovered', is_delivered: true, recovered: 0n })
    expect(viewRecourse(recourse)).toMatchObject({ delivered: true, recovered: '0', route: 'present_again' })
    expect((await read()).delivered_at).not.toBeNull()
    expect(await readUsed()).toBeGreaterThan(0n)
  })

  it('links what the seller sends back to the purse, and its budget has it again', async () => {
    const { buy, send, pass, see, purse, key, requests, ...read } = await scene()
    const { open, settle, id } = await buy()
    await settle()
    const { id: recourseId, status } = await open()
    expect(status).toBe('open')
    await pass(3)
    expect((await see(recourseId)).status).toBe('open')
    await send(purse, PRICE)
    await pass(3)
    expect(await see(recourseId)).toMatchObject({ status: 'recovered', recovered: PRICE })
    expect(await read.listRefunds()).toMatchObject([{ object_id: id, units: PRICE }])
    expect(await read.readUsed()).toBe(0n)
    expect(await read.readUnits(pursePlace(key.id))).toBe(700n)
    expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('links what the seller sends back to the wallet', async () => {
    const { buy, send, pass, see, home } = await scene()
    const { open, settle } = await buy()
    await settle()
    const { id } = await open()
    await send(home, PRICE)
    await pass(3)
    expect((await see(id)).status).toBe('recovered')
  })

  it('leaves the budgets as they are where the owner wants that', async () => {
    const { buy, send, pass, see, purse, account, readUsed } = await scene()
    await database()
      .kysely.updateTable('account')
      .set({ refunds_refill: false })
      .where('id', '=', account.id)
      .execute()
    const { open, settle } = await buy()
    await settle()
    const used = await readUsed()
    const { id } = await open()
    await send(purse, PRICE)
    await pass(3)
    expect((await see(id)).status).toBe('recovered')
    expect(await readUsed()).toBe(used)
  })

  it('never links more than was paid: a seller that refunds in parts, too much and twice', async () => {
    const { buy, send, pass, see, purse, listRefunds, readUsed } = await scene()
    const { open, settle } = await buy()
    await settle()
    const { id } = await open()
    await send(purse, 60n)
    await pass(3)
    expect(await see(id)).toMatchObject({ status: 'open', recovered: 60n })
    await send(purse, 60n)
    await pass(3)
    await send(purse, 60n)
    await pass(30)
    expect(await see(id)).toMatchObject({ status: 'recovered', recovered: PRICE })
    expect((await listRefunds()).map(({ units }) => units).sort()).toEqual([40n, 60n])
    expect(await readUsed()).toBe(0n)
  })

  it('never links more than was paid, by all ways at once', async () => {
    const { buy, send, pass, see, purse, parts, listRefunds, readUsed } = await scene()
    const { open, settle, id: purchaseId } = await buy()
    await settle()
    const recourse = await open()
    await send(purse, PRICE)
    const link = (name: number) => {
      const movement = `channel:${name}:return:${purchaseId}`
      return linkRefund(parts, recourse, { movement, entryId: movement, units: 30n, evidence: {} })
    }
    await Promise.all([pass(3), ...Array.from({ length: 12 }, (_, at) => link(at % 6)), pass(0), open()])
    expect(await see(recourse.id)).toMatchObject({ status: 'recovered', recovered: PRICE })
    expect((await listRefunds()).reduce((sum, { units }) => sum + units, 0n)).toBe(PRICE)
    expect(await readUsed()).toBe(0n)
  })

  it('gives each arrival to one purchase, whoever looks first', async () => {
    const { buy, send, pass, see, purse, listRefunds } = await scene()
    const first = await buy()
    const second = await buy()
    await first.settle()
    await second.settle()
    const opened = [await first.open(), await second.open()]
    await send(purse, PRICE)
    await Promise.all([pass(3), pass(0), pass(0)])
    const seen = async () => (await Promise.all(opened.map(({ id }) => see(id)))).map(({ status }) => status)
    expect((await seen()).sort()).toEqual(['open', 'recovered'])
    await send(purse, PRICE)
    await pass(30)
    expect(await seen()).toEqual(['recovered', 'recovered'])
    const refunds = await listRefunds()
    expect(new Set(refunds.map(({ object_id }) => object_id)).size).toBe(2)
    expect(refunds).toHaveLength(2)
  })

  it('asks for its own before it takes what another recourse has asked for', async () => {
    let isDown = true
    const { buy, send, pass, see, purse, requests } = await scene({
      answer: ({ method }: { method: string }) => (method === 'POST' ? (isDown ? 503 : 202) : 404),
    })
    const first = await buy()
    const second = await buy()
    await first.settle()
    await second.settle()
    const late = await first.open()
    isDown = false
    await second.open()
    await send(purse, PRICE)
    await pass(5)
    const asked = requests
      .filter(({ method }) => method === 'POST')
      .map(({ headers }) => headers['idempotency-key'])
    expect(asked.filter((name) => name === late.id)).toHaveLength(2)
    await send(purse, PRICE)
    await pass(30)
    expect((await see(late.id)).status).toBe('recovered')
  })

  it('expires where the seller promises and does not, or pays another address', async () => {
    const { buy, send, pass, see, readUsed } = await scene()
    const { open, settle } = await buy()
    await settle()
    const used = await readUsed()
    const { id } = await open()
    await send('0x00000000000000000000000000000000000a11ce', PRICE)
    await pass(6 * DAY_S)
    expect((await see(id)).status).toBe('open')
    await pass(1 * DAY_S)
    expect(await see(id)).toMatchObject({ status: 'expired', recovered: 0n })
    expect(await readUsed()).toBe(used)
  })

  it('keeps a part that came, where the rest does not', async () => {
    const { buy, send, pass, see, purse } = await scene()
    const { open, settle } = await buy()
    await settle()
    const { id } = await open()
    await send(purse, 30n)
    await pass(7 * DAY_S)
    expect(await see(id)).toMatchObject({ status: 'partly_recovered', recovered: 30n })
  })

  it('counts a refund once, where the seller refunds first and settles then', async () => {
    const { buy, send, pass, see, purse, key, readUnits, readUsed, listRefunds } = await scene()
    const { open, take } = await buy()
    await send(purse, PRICE)
    await take()
    const { id } = await open()
    await pass(3)
    expect(await see(id)).toMatchObject({ status: 'recovered', recovered: PRICE })
    expect(await readUnits(pursePlace(key.id))).toBe(700n)
    expect(await readUsed()).toBe(0n)
    // A gift is no refund of a payment that was never taken.
    const voided = await buy()
    await send(purse, PRICE)
    expect(await voided.open()).toMatchObject({ status: 'recovered', route: 'cancel_authorization' })
    expect(await listRefunds()).toHaveLength(1)
    expect(await readUsed()).toBe(0n)
    expect(await readUnits(pursePlace(key.id))).toBe(800n)
  })

  it('takes no money of others, and none that came before the purchase, for a refund', async () => {
    const { buy, send, pass, see, purse, chain, parts } = await scene()
    const { privateKeyToAccount } = await import('viem/accounts')
    const stranger = privateKeyToAccount(`0x${'7'.repeat(64)}`)
    await chain.mint([{ token: 'USDC', to: stranger.address, units: 1_000n }])
    await send(purse, PRICE)
    await pass(10)
    const { open, settle, id: purchaseId } = await buy()
    await database()
      .kysely.updateTable('purchase')
      .set({ created_at: parts.clock() })
      .where('id', '=', purchaseId)
      .execute()
    await settle()
    const { id } = await open()
    await send(purse, PRICE, stranger)
    await pass(3)
    expect(await see(id)).toMatchObject({ status: 'open', recovered: 0n })
  })

  it('is refused, or impossible, by what the seller declares', async () => {
    const refusing = await scene({ answer: () => 403 })
    const one = await refusing.buy()
    await one.settle()
    expect(await one.open()).toMatchObject({ status: 'refused', route: 'refund_request' })
    for (const refundUrl of [null, 'https://b.example.com/refund', 'http://169.254.169.254/']) {
      const silent = await scene({ refundUrl })
      const other = await silent.buy()
      await other.settle()
      expect(await other.open()).toMatchObject({ status: 'impossible', route: 'none' })
      expect(silent.requests.filter(({ method }) => method === 'POST')).toEqual([])
    }
  })

  it('asks a seller that does not answer again, and not for ever', async () => {
    const { buy, pass, see, requests } = await scene({ answer: () => 503 })
    const { open, settle } = await buy()
    await settle()
    const { id } = await open()
    for (let round = 0; round < 20; round += 1) await pass(600)
    expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(8)
    expect((await see(id)).status).toBe('open')
  }, 60_000)

  it('is one for each payment, whoever presses, and never changes once it has ended', async () => {
    const { buy, send, pass, see, purse } = await scene()
    const { open, settle } = await buy()
    await settle()
    const opened = await Promise.all([open(), open('fraudulent'), open('duplicate')])
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1)
    const [{ id }] = opened
    await send(purse, PRICE)
    await pass(200)
    const ended = await see(id)
    expect(ended.status).toBe('recovered')
    expect(await open('wrong_amount')).toEqual(ended)
    const change = database().kysely.updateTable('recourse').set({ status: 'refused' }).where('id', '=', id)
    await expect(change.execute()).rejects.toThrow(/append-only/)
  })

  it('goes on where its process ended', async () => {
    const { buy, send, pass, see, purse } = await scene()
    const { open, settle } = await buy()
    await settle()
    const { id } = await open()
    const crashed = new Date((await see(id)).next_at.getTime() + 60_000)
    await database()
      .kysely.updateTable('recourse')
      .set({ busy_until: crashed })
      .where('id', '=', id)
      .execute()
    await send(purse, PRICE)
    await pass(10)
    expect((await see(id)).status).toBe('open')
    await pass(120)
    expect((await see(id)).status).toBe('recovered')
  })

  it('has an event for its opening, each step and its end', async () => {
    const { buy, send, pass, purse, account } = await scene()
    const { open, settle, read } = await buy()
    await settle()
    const { id } = await open()
    await send(purse, PRICE)
    await pass(3)
    const events = await database()
      .kysely.selectFrom('event_outbox')
      .innerJoin('event', 'event.id', 'event_outbox.event_id')
      .select(['type', 'data'])
      .where('account_id', '=', account.id)
      .where('object_id', '=', id)
      .orderBy('position')
      .execute()
    expect(events.map(({ type }) => type)).toEqual([
      'recourse.opened',
      'recourse.step',
      'recourse.step',
      'recourse.recovered',
    ])
    expect(events[0]?.data).toMatchObject({ refundOf: { kind: 'purchase', id: (await read()).id } })
  })
})
