import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Services } from '../../../src/kernel/context.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import intentTool from '../../../tools/wallets/allowances/intent.ts'
import list from '../../../tools/wallets/allowances/list.ts'
import set from '../../../tools/wallets/allowances/set.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { intentAnswer, payee, type Sign, walletScene } from './scene.ts'

const rejected = { code: 'signature_rejected' }
const cards = { agentId: 'cards', dailyMax: '1000', spent: '0', isOwn: true }
const late = new Date(noon.getTime() + 6 * 60_000)

onBothEngines('an allowance', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
  })
  const setAllowance = async (as: Principal, input: object) =>
    intentAnswer.parse(await scene.call(intentTool, as, input))
  const allow = async (as: Principal, sign: Sign, input: { agentId: string; dailyMax?: string }) => {
    const intent = await setAllowance(as, input)
    return scene.call(set, as, { intentId: intent.intentId, signature: await sign(intent) })
  }
  const readId = (principal: Principal) => (principal.kind === 'key' ? principal.key.id : '')

  describe.each([
    ['passkey', async () => scene.newPasskeyOwner()],
    [
      'EVM key',
      async () => {
        const owner = await scene.newOwner()
        return { owner, sign: (await scene.addEoa(owner)).sign }
      },
    ],
  ])('by the %s that owns the wallet', (_name, make) => {
    it('defaults to the key’s daily budget, is enforced on chain, and is listed', async () => {
      const { owner, sign } = await make()
      const { principal, sign: signAsAgent } = await scene.addAgent(owner)
      const agentId = readId(principal)
      const starter = { agentId, dailyMax: '1000', spent: '0', isOwn: false }
      expect(await scene.call(list, owner, {})).toEqual({ allowances: [cards, starter], nextCursor: null })
      expect(await allow(owner, sign, { agentId })).toEqual({
        agentId,
        dailyMax: '5000',
        spent: '0',
        isOwn: true,
      })
      expect(await allow(owner, sign, { agentId, dailyMax: '3' })).toMatchObject({ dailyMax: '3' })
      const pay = async (amount: string) => {
        const intent = await scene.requestIntent(principal, { destination: payee, amount })
        const signature = await signAsAgent(intent)
        return scene.call(transfer, principal, { destination: payee, amount, signature })
      }
      await pay('2')
      await expect(pay('1.01')).rejects.toMatchObject(rejected)
      expect(await scene.call(list, owner, {})).toEqual({
        allowances: [cards, { agentId, dailyMax: '3', spent: '2', isOwn: true }],
        nextCursor: null,
      })
    })

    it('is not set by a changed, expired or foreign intent, nor by another signer', async () => {
      const { owner, sign } = await make()
      const agentId = readId((await scene.addAgent(owner)).principal)
      const other = await scene.addPasskey(owner)
      const eve = await scene.newPasskeyOwner()
      const [one, two] = [
        await setAllowance(owner, { agentId, dailyMax: '5' }),
        await setAllowance(owner, { agentId, dailyMax: '50' }),
      ]
      const { intentId } = two
      const before = await services.chain.blockNumber()
      for (const signature of [await sign(one), await other.sign(two), await eve.sign(two), 'x'])
        await expect(scene.call(set, owner, { intentId, signature })).rejects.toMatchObject(rejected)
      const signature = await sign(two)
      await expect(scene.call(set, eve.owner, { intentId, signature })).rejects.toMatchObject(rejected)
      await expect(scene.call(set, owner, { intentId, signature }, { now: late })).rejects.toMatchObject(
        rejected,
      )
      const payment = await scene.requestIntent(owner, { destination: payee, amount: '1' })
      await expect(
        scene.call(set, owner, { intentId: payment.intentId, signature: await sign(payment) }),
      ).rejects.toMatchObject(rejected)
      expect(await services.chain.blockNumber()).toBe(before)
    })
  })

  it('is resubmitted when the chain did not answer, and set once', async () => {
    const { owner, sign } = await scene.newPasskeyOwner()
    const agentId = readId((await scene.addAgent(owner)).principal)
    const intent = await setAllowance(owner, { agentId, dailyMax: '7' })
    const input = { intentId: intent.intentId, signature: await sign(intent) }
    const lossy: Chain = {
      ...services.chain,
      submit: async (operation) => {
        await services.chain.submit(operation)
        throw new Error('the connection was lost after the broadcast')
      },
    }
    await expect(scene.call(set, owner, input, { chain: lossy })).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    const block = await services.chain.blockNumber()
    expect(await scene.call(set, owner, input, { now: late })).toMatchObject({ dailyMax: '7', isOwn: true })
    expect(await services.chain.blockNumber()).toBe(block)
  })

  it('does not apply to a wallet that the gateway signs for', async () => {
    const owner = await scene.newOwner()
    const agentId = readId((await scene.addAgent(owner)).principal)
    await expect(setAllowance(owner, { agentId })).rejects.toMatchObject({ code: 'conflict' })
    await expect(scene.call(set, owner, { intentId: 'int_x', signature: 'x' })).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await scene.call(list, owner, {})).toEqual({ allowances: [], nextCursor: null })
  })

  it('can be set for cards too, by amount, down to zero, and is listed page by page', async () => {
    const { owner, sign } = await scene.newPasskeyOwner()
    const agentId = readId((await scene.addAgent(owner)).principal)
    await expect(setAllowance(owner, { agentId: 'cards' })).rejects.toMatchObject({ code: 'invalid_request' })
    for (const dailyMax of ['0', '12.5'])
      expect(await allow(owner, sign, { agentId: 'cards', dailyMax })).toEqual({ ...cards, dailyMax })
    const page = z.object({
      allowances: z.array(z.object({ agentId: z.string() })),
      nextCursor: z.string().nullable(),
    })
    const first = page.parse(await scene.call(list, owner, { limit: 1 }))
    const second = page.parse(await scene.call(list, owner, { limit: 1, cursor: first.nextCursor }))
    expect([first, second].map(({ allowances }) => allowances.map((each) => each.agentId))).toEqual([
      ['cards'],
      [agentId],
    ])
    expect(second.nextCursor).toBeNull()
    const guarded = await scene.newOwner()
    await expect(setAllowance(guarded, { agentId: 'cards', dailyMax: '1' })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  it('accepts only one’s own keys', async () => {
    const [{ owner }, eve] = [await scene.newPasskeyOwner(), await scene.newPasskeyOwner()]
    const agentId = readId((await scene.addAgent(eve.owner)).principal)
    await expect(setAllowance(owner, { agentId, dailyMax: '1' })).rejects.toMatchObject({ code: 'not_found' })
  })
})
