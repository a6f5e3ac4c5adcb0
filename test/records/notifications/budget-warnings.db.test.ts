/** Warnings of budgets: every key of every account is looked at in one round. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import { run } from '../../../src/kernel/run.ts'
import { writeBudgetWarnings } from '../../../src/records/notifications/budget-warnings.ts'
import createKey from '../../../tools/agents/keys/create.ts'
import guest from '../../../tools/auth/guest.ts'
import create from '../../../tools/notifications/channels/create.ts'
import { onBothEngines } from '../../engines.ts'
import { newAgent } from '../../journeys/agent.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import { signInAgain } from '../../people/identity/signed-in.ts'

const KEYS = 501

onBothEngines('warnings of budgets', (database) => {
  it('are written of all keys, however many have spent today', async () => {
    const services = await servicesOn(database(), { clock: () => noon })
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    const owner = await signInAgain(services, account.id)
    await owner.call(create, { type: 'telegram', botToken: '1:secret', chatId: 1 })
    const { body: made } = await owner.call(createKey, {
      name: 'Shopper',
      publicKey: (await newAgent()).jwk.x,
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        categories: { allow: ['transfer'] },
      },
    })
    const { kysely } = database()
    const one = await kysely
      .selectFrom('access_key')
      .select(['account_id', 'name', 'kind', 'scopes', 'policy', 'policy_version', 'created_at'])
      .where('id', '=', String(made.agentId))
      .executeTakeFirstOrThrow()
    const ids = Array.from({ length: KEYS }, () => newId('key', noon))
    await kysely
      .insertInto('access_key')
      .values(ids.map((id) => ({ ...one, id, policy: JSON.stringify(one.policy) })))
      .execute()
    await kysely
      .insertInto('budget_usage')
      .values(ids.map((id) => ({ key_id: id, day: '2026-11-20', used_micros: 80_000_000n, count: 1 })))
      .execute()
    const round = () => writeBudgetWarnings(services, { now: noon, at: noon })
    expect(await round()).toBe(KEYS)
    expect(await round()).toBe(0)
  })
})
