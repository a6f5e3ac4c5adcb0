/** An approval that stays open for more than a day: the agent's idempotency key still refers to it. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { sweepIdempotency } from '../../src/books/spending/idempotency.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { overBothEngines } from './both-engines.ts'
import { newGuest, requestJson } from './people.ts'

const HOUR = 3600

overBothEngines('an approval', {}, ({ gateway, pass, now, databaseUrl }) => {
  it('keeps the idempotency key of its call while it is open', async () => {
    const owner = await newGuest(gateway().origin)
    const { body: key } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '50' },
        categories: { allow: ['transfer'] },
        approval: { above: '5', ttlSec: 48 * HOUR },
      },
    })
    const pay = () =>
      requestJson(gateway().origin, 'POST', '/api/wallets/transfer', {
        body: { destination: `0x${'1'.repeat(40)}`, amount: '10', signature: 'x' },
        headers: { authorization: `Bearer ${z.string().parse(key.key)}`, 'idempotency-key': 'rent' },
      })
    const { body: pendingCall } = await pay()
    expect(pendingCall.code).toBe('approval_required')
    pass(25 * HOUR)
    const url = databaseUrl()
    if (url !== null) {
      const database = await openPostgres({ url })
      await sweepIdempotency(database, now())
      await database.close()
    }
    const { body: again } = await pay()
    expect([again.code, again.approvalId]).toEqual(['approval_required', pendingCall.approvalId])
    pass(24 * HOUR)
    const { body: late } = await pay()
    expect([late.code, late.approvalId]).not.toEqual(['approval_required', pendingCall.approvalId])
  })
})
