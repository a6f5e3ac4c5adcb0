/** Payments by the owner happen once, however often a button is pressed without an answer. */
import { describe, expect, it, vi } from 'vitest'
import { BursarProblem, BursarUnreachable } from '../../src/client/problem.ts'
import { type Attempt, forgetPayments, keepPayments, payOnce } from '../../src/console/data/payments.ts'

const lost = () => Promise.reject(new BursarUnreachable('The gateway cannot be reached.'))
const refuse = (status: number, code: BursarProblem['code']) => () =>
  Promise.reject(
    new BursarProblem({ type: '', title: '', status, detail: '', code, instance: '', requestId: '' }),
  )

/** Presses once, and records the request as it would be sent. */
async function press(terms: object, end: () => Promise<unknown>, pay = payOnce) {
  let sent = {}
  await pay('wallets.transfer', terms, async ({ idempotencyKey, sign }: Attempt) => {
    const signed = await sign(async () => ({ intentId: crypto.randomUUID(), signature: crypto.randomUUID() }))
    sent = { idempotencyKey, ...signed }
    return end()
  }).catch(() => undefined)
  return sent
}

describe('payOnce', () => {
  it('repeats the same signed request after an answer was lost', async () => {
    const terms = { amount: '1.25' }
    const first = await press(terms, lost)
    expect(await press(terms, lost)).toEqual(first)
    expect(await press(terms, refuse(503, 'provider_unavailable'))).toEqual(first)
    expect(await press(terms, refuse(409, 'idempotency_in_progress'))).toEqual(first)
    expect(await press(terms, async () => 'paid')).toEqual(first)
    expect(await press(terms, async () => 'paid')).not.toEqual(first)
  })

  it('knows an open payment again after other amounts were tried', async () => {
    const first = await press({ amount: '2' }, lost)
    expect(await press({ amount: '3' }, async () => 'paid')).not.toEqual(first)
    expect(await press({ amount: '2' }, lost)).toEqual(first)
  })

  it.each([
    [403, 'policy_denied'],
    [422, 'insufficient_funds'],
    [422, 'idempotency_key_reused'],
  ] as const)('makes a new payment after the refusal %d %s', async (status, code) => {
    const terms = { amount: code }
    const first = await press(terms, refuse(status, code))
    expect(await press(terms, async () => 'paid')).not.toEqual(first)
  })

  it('keeps open payments over a reload, for each account until its outcome or sign-out, and no payee', async () => {
    const kept = new Map<string, string>()
    const repeated: string[] = []
    const storage = {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, text: string) => void kept.set(name, text),
      removeItem: (name: string) => void kept.delete(name),
    }
    const signInAs = (id: string) =>
      keepPayments({ storage, accountId: async () => id, tellRepeated: (begunAt) => repeated.push(begunAt) })
    const terms = { destination: 'acc_payee', amount: '5' }
    const reload = async () => {
      vi.resetModules()
      const { keepPayments: keep, payOnce: pay } = await import('../../src/console/data/payments.ts')
      keep({ storage, accountId: async () => 'acc_1' })
      return pay
    }
    signInAs('acc_1')
    const first = await press(terms, lost)
    expect(JSON.stringify([...kept])).not.toContain('payee')
    expect(await press(terms, lost, await reload())).toEqual(first)
    signInAs('acc_2')
    expect(await press(terms, async () => 'paid')).not.toEqual(first)
    signInAs('acc_1')
    expect(repeated).toEqual([])
    expect(await press(terms, async () => 'paid')).toEqual(first)
    expect([repeated.length, kept.size]).toEqual([1, 0])
    const second = await press(terms, lost)
    forgetPayments('acc_1')
    expect(kept.size).toBe(0)
    expect(await press(terms, lost)).not.toEqual(second)
    kept.set('open-payments acc_1', '{"x": 1}')
    expect(await press(terms, async () => 'paid')).not.toEqual(second)
  })
})
