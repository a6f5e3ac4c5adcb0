/** Every spending operation passes the policy engine: no tool of the registry moves money without it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type SpendCategory, spendPolicy } from '../../policies/policy.ts'
import { newId } from '../../src/core/base/ids.ts'
import type { Services } from '../../src/kernel/context.ts'
import { run } from '../../src/kernel/run.ts'
import type { Tool } from '../../src/kernel/tool.ts'
import { createAccount } from '../../src/people/identity/accounts.ts'
import { insertKey } from '../../src/people/identity/store.ts'
import { openPortfolio } from '../../src/rails/investing/open-portfolio.ts'
import { bookDeposit, demoFunds, openWallet } from '../../src/rails/wallets/open-wallet.ts'
import { insertEoaSigner } from '../../src/rails/wallets/signing/signer-store.ts'
import { findWallet } from '../../src/rails/wallets/store.ts'
import { tools } from '../../tools/index.ts'
import { onBothEngines } from '../engines.ts'
import { buildCall, buildKeyPrincipal, newPerson, noon, servicesOn } from '../kernel/scene.ts'
import { insertTestRecipient } from '../rails/banking/test-recipient.ts'
import { startChallenger } from '../rails/buying/flaky-sellers.ts'

const spending = tools.filter(({ effect }) => effect === 'spend')

onBothEngines('every spending operation', (database) => {
  let services: Services
  let seller: Awaited<ReturnType<typeof startChallenger>>
  /** A valid input: the tool's example, which for a purchase needs a seller. */
  const buildInput = async ({ name, example }: Tool, accountId: string) => {
    if (name === 'purchases.buy') return { url: seller.url, maxAmount: '0.05' }
    if (name !== 'banking.payouts.create') return example
    return { recipientId: await insertTestRecipient(services, accountId), amount: '25' }
  }
  beforeAll(async () => {
    seller = await startChallenger()
    const { settings } = await servicesOn(database())
    const fxPrice = { asset: 'USDC' as const, units: 50_000n }
    services = await servicesOn(database(), { settings: { ...settings, fxPrice } })
    // The payer of the gasless example.
    const payer = '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf'
    await services.chain.mint([{ token: 'USDC', to: payer, units: 1_000_000n }])
  })
  afterAll(() => seller?.close())
  const keyWith = async (allow: SpendCategory[], changes: object = {}) => {
    const account = await createAccount(services, { displayName: 'Ada', guest: false, at: noon })
    await openWallet(services, { accountId: account.id, at: noon })
    await bookDeposit(services, { accountId: account.id, funds: demoFunds, reference: account.id, at: noon })
    await openPortfolio(services, { accountId: account.id, at: noon })
    const policy = spendPolicy.parse({
      perTransaction: { max: '100' },
      dailyBudget: { max: '100' },
      categories: { allow },
      ...changes,
    })
    const principal = buildKeyPrincipal(account, { policy, scopes: spending.flatMap(({ scopes }) => scopes) })
    await insertKey(database(), account.id, { ...principal.key, secretHash: null })
    return principal
  }
  const readMoved = async () =>
    (
      await database()
        .kysely.selectFrom('posting')
        .select('transaction_id')
        .where('kind', 'not in', ['deposit', 'fill'])
        .execute()
    ).length

  it.each(spending.map((tool) => [tool.name, tool] as const))(
    '%s is denied by a policy that allows nothing, and moves nothing',
    async (_name, tool) => {
      // Over REST a sold operation is paid by x402; as a key's own spend it is an account's.
      const asKey = { ...tool, who: 'account' as const }
      const principal = await keyWith([])
      const input = await buildInput(tool, principal.account.id)
      const before = await readMoved()
      const refusal = await run(asKey, buildCall(services, principal), input).catch((error: unknown) => error)
      expect(refusal).toMatchObject({
        code: 'policy_denied',
        members: { violations: [{ rule: 'category' }] },
      })
      expect(await readMoved()).toBe(before)
      const rows = await database()
        .kysely.selectFrom('decision')
        .select(['verdict', 'operation', 'facts'])
        .where('key_id', '=', principal.key.id)
        .execute()
      expect(rows).toMatchObject([{ verdict: 'deny', operation: tool.name }])
      const { category } = z.looseObject({ category: z.string() }).parse(rows[0]?.facts)
      const { violations } = z
        .object({ members: z.object({ violations: z.array(z.looseObject({ requested: z.string() })) }) })
        .parse(refusal).members
      expect(violations[0]?.requested).toBe(category)
    },
  )

  it.each(spending.filter(({ proof }) => proof !== 'payer').map((tool) => [tool.name, tool] as const))(
    '%s asks a person for a proof besides the session in every mode, and moves nothing',
    async (_name, tool) => {
      const { account } = await keyWith([])
      const person = await newPerson(database())
      const input = await buildInput(tool, account.id)
      const before = await readMoved()
      const readCodes = async (mfaEnrolled: boolean, changes: object = {}) => {
        const principal = { ...person, account: { ...account, mfaEnrolled } }
        const codes: unknown[] = []
        for (const mode of ['sandbox', 'production'] as const) {
          const call = buildCall(services, principal, { settings: { ...services.settings, mode } })
          const raw = { ...z.looseObject({}).parse(input), ...changes }
          const answer = await run({ ...tool, who: 'account' }, call, raw).catch((error: unknown) => error)
          codes.push(z.looseObject({ code: z.string().optional() }).parse(answer).code)
        }
        return codes
      }
      expect(await readCodes(true)).toEqual(['step_up_required', 'step_up_required'])
      if (tool.proof === 'signature') {
        const address = '0x7e5f4552091a69125d5dfcb7b8c2659029395bdf'
        await insertEoaSigner({ database: database(), newId }, { accountId: account.id, address, at: noon })
        expect(await readCodes(true)).toEqual(['signature_rejected', 'signature_rejected'])
        // In production, the seller of the example would be on a private address.
        expect((await readCodes(true, { signature: 'x' }))[0]).toBe('signature_rejected')
      }
      expect(await readMoved()).toBe(before)
    },
  )

  it.each([
    [
      'wallets.transfer',
      { amount: '1', signature: 's', destination: `0x${'1'.repeat(40)}` },
      { amount: '1.000000' },
    ],
    ['investing.order', { symbol: 'VTI', side: 'buy', notional: '10' }, { notional: '10.0' }],
    [
      'investing.order',
      { symbol: 'VTI', side: 'buy', notional: '10', type: 'limit', limitPrice: '1.5' },
      { notional: '10.00', limitPrice: '1.50' },
    ],
  ])('%s treats an amount with trailing zeros as the same call', async (name, asked, written) => {
    const tool = spending.find((one) => one.name === name)
    if (tool === undefined) throw new Error(`unknown tool ${name}`)
    const principal = await keyWith(['transfer', 'invest'])
    const to = await findWallet(database(), principal.account.id)
    if (to !== undefined) await services.chain.mint([{ token: 'USDC', to, units: 10_000_000n }])
    const call = () => buildCall(services, principal, { idempotencyKey: 'zeros' })
    const first = await run(tool, call(), asked)
    expect(await run(tool, call(), { ...asked, ...written })).toEqual({ ...first, replayed: true })
  })

  it.each(spending.map((tool) => [tool.name, tool] as const))(
    '%s waits for an approval',
    async (_name, tool) => {
      const principal = await keyWith(['transfer', 'gasless', 'card', 'invest', 'swap', 'x402', 'payout'], {
        approval: { above: '0.01' },
      })
      const input = await buildInput(tool, principal.account.id)
      const before = await readMoved()
      await expect(
        run({ ...tool, who: 'account' }, buildCall(services, principal), input),
      ).rejects.toMatchObject({ code: 'approval_required' })
      expect(await readMoved()).toBe(before)
    },
  )
})

describe('the registry', () => {
  it('has spending operations, each with an example', () => {
    expect(spending.length).toBeGreaterThan(0)
    expect(spending.filter(({ example }) => example === undefined)).toEqual([])
  })
})
