import { expect, it } from 'vitest'
import { readSystemBalance } from '../../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../../src/books/ledger/trial-balance.ts'
import { newId } from '../../../../src/core/base/ids.ts'
import {
  claimPayment,
  claimPaymentForResend,
  deletePayment,
  failPayment,
  findPayment,
  findPaymentLike,
  insertPayment,
  markPending,
  type NewPayment,
  openPayments,
  recordTransaction,
  settlePayment,
} from '../../../../src/rails/selling/payments/store.ts'
import { onBothEngines } from '../../../engines.ts'

const at = new Date('2026-11-20T12:00:00.000Z')
const after = (ms: number) => new Date(at.getTime() + ms)
const hash = `0x${'ab'.repeat(32)}`

onBothEngines('payments', (database) => {
  let count = 0
  const newPayment = (changes: Partial<NewPayment> = {}): NewPayment => {
    count += 1
    return {
      id: newId('pay', at),
      chain: 'base-sepolia',
      token: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
      payer: `0x${'1'.repeat(40)}`,
      nonce: `0x${count.toString(16).padStart(64, '0')}`,
      pay_to: `0x${'2'.repeat(40)}`,
      since_block: null,
      identifier: null,
      request: 'request',
      signature_hash: 'signature',
      operation: 'x402.fx',
      network: 'base-sepolia',
      scheme: 'exact',
      receipt_header: 'X-PAYMENT-RESPONSE',
      asset: 'USDC',
      units: 10_000n,
      answer: { z: 1, a: ['2'], rate: '0.9270' },
      valid_before: after(300_000),
      ...changes,
    }
  }
  const beginNew = async (changes: Partial<NewPayment> = {}) => {
    const payment = newPayment(changes)
    expect(await insertPayment(database(), payment, at)).toBe(true)
    return payment
  }
  const readMetered = async (id: string) =>
    (await database().kysely.selectFrom('metering').selectAll().where('payment_id', '=', id).execute()).length

  it('begin once per authorization, under concurrent attempts', async () => {
    const payment = newPayment()
    const tries = await Promise.all(
      Array.from({ length: 8 }, () =>
        insertPayment(database(), { ...payment, id: newId('pay', at), request: 'another' }, at),
      ),
    )
    expect(tries.filter((isBegun) => isBegun)).toHaveLength(1)
    expect(
      await insertPayment(database(), newPayment({ ...payment, chain: 'base', id: newId('pay', at) }), at),
    ).toBe(true)
  })

  it('begin once under an id that their payer gave them', async () => {
    const first = await beginNew({ identifier: 'name-of-a-purchase' })
    const second = newPayment({ identifier: 'name-of-a-purchase' })
    expect(await insertPayment(database(), second, at)).toBe(false)
    expect((await findPaymentLike(database(), second, 'name-of-a-purchase'))?.id).toBe(first.id)
    expect(await findPaymentLike(database(), second, null)).toBeUndefined()
    await beginNew({ identifier: 'name-of-a-purchase', payer: `0x${'2'.repeat(40)}` })
    await failPayment(database(), { id: first.id, failure: 'expired', at })
    expect(await insertPayment(database(), second, at)).toBe(true)
  })

  it('are metered and booked once, regardless of the number of settlers', async () => {
    const before = await readSystemBalance(database(), 'revenue:x402.fx', 'USDC')
    const { id, answer } = await beginNew()
    const settle = (receipt: string) => settlePayment(database(), { id, transaction: hash, receipt, at })
    await settle('first')
    await Promise.all(Array.from({ length: 5 }, () => settle('late')))
    expect(await findPayment(database(), id)).toMatchObject({
      state: 'settled',
      receipt: 'first',
      transaction_hash: hash,
    })
    expect(JSON.stringify((await findPayment(database(), id))?.answer)).toBe(JSON.stringify(answer))
    expect(await readMetered(id)).toBe(1)
    expect(await readSystemBalance(database(), 'revenue:x402.fx', 'USDC')).toBe(before + 10_000n)
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('payments that are settled are never deleted, failed, retried or left open', async () => {
    const { id } = await beginNew()
    await settlePayment(database(), { id, transaction: null, receipt: 'receipt', at })
    const settled = await findPayment(database(), id)
    await deletePayment(database(), id)
    await failPayment(database(), { id, failure: 'no', at: after(1) })
    await markPending(database(), { id, transaction: hash, at: after(1) })
    await recordTransaction(database(), id, hash)
    expect(await claimPaymentForResend(database(), { id, before: after(1), at: after(1) })).toBe(false)
    expect(await findPayment(database(), id)).toEqual(settled)
  })

  it('payments that may have been paid are never deleted, and are resent by one process alone', async () => {
    const { id } = await beginNew()
    await recordTransaction(database(), id, hash)
    await markPending(database(), { id, transaction: null, at: after(3_000) })
    await deletePayment(database(), id)
    expect(await findPayment(database(), id)).toMatchObject({ state: 'pending', transaction_hash: hash })
    expect(await claimPaymentForResend(database(), { id, before: after(-1), at: after(4_000) })).toBe(false)
    const retaken = await Promise.all(
      Array.from({ length: 5 }, () =>
        claimPaymentForResend(database(), { id, before: at, at: after(4_000) }),
      ),
    )
    expect(retaken.filter((isOurs) => isOurs)).toHaveLength(1)
  })

  it('are checked by one process at a time, and claimed ones only once abandoned', async () => {
    const { id: pending } = await beginNew()
    const { id: inHand } = await beginNew()
    await markPending(database(), { id: pending, transaction: null, at })
    const due = (abandoned: Date) =>
      openPayments(
        { database: database(), chain: { name: 'base-sepolia' } },
        { before: after(1), abandoned, limit: 100 },
      ).then((rows) => rows.filter(({ id }) => id === pending || id === inHand))
    expect((await due(at)).map(({ id }) => id)).toEqual([pending])
    expect((await due(after(1))).map(({ id }) => id).sort()).toEqual([pending, inHand].sort())
    const [row] = await due(at)
    if (row === undefined) throw new Error('it is due')
    const claims = await Promise.all(Array.from({ length: 4 }, () => claimPayment(database(), row, after(5))))
    expect(claims.filter((isOurs) => isOurs)).toHaveLength(1)
  })
})
