import { beforeAll, expect, it } from 'vitest'
import type { Principal } from '../../src/core/base/principal.ts'
import type { Services } from '../../src/kernel/context.ts'
import { findKey } from '../../src/people/identity/store.ts'
import decisions from '../../tools/agents/decisions.ts'
import pause from '../../tools/agents/keys/pause.ts'
import context from '../../tools/context.ts'
import transfer from '../../tools/wallets/transfer.ts'
import fx from '../../tools/x402/fx.ts'
import { onBothEngines } from '../engines.ts'
import { servicesOn } from '../kernel/scene.ts'
import { payee, walletScene } from './wallets/scene.ts'

onBothEngines('the context of a caller', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  let owner: Principal
  let agent: Principal
  const reload = async (): Promise<Principal> => {
    if (agent.kind !== 'key') throw new Error('the agent is no key')
    const found = await findKey(database(), { id: agent.key.id })
    if (found === undefined) throw new Error('the key is missing')
    return { kind: 'key', ...found }
  }
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
    owner = await scene.newOwner()
    agent = (await scene.addAgent(owner, { categories: { allow: ['transfer', 'x402'] } })).principal
  })
  const read = (as: Principal) => scene.call(context, as, {})

  it('shows what a key has used by category, without what was denied', async () => {
    expect(await read(agent)).toMatchObject({ status: 'active', usage: { used: '0', byCategory: [] } })
    const pay = (amount: string, idempotencyKey: string) =>
      scene.call(transfer, agent, { destination: payee, amount, signature: 'x' }, { idempotencyKey })
    await pay('2', 'one')
    await pay('3', 'two')
    await expect(pay('501', 'three')).rejects.toMatchObject({ code: 'policy_denied' })
    if (agent.kind !== 'key') throw new Error('the agent is no key')
    const buyer: Principal = { ...agent, key: { ...agent.key, scopes: ['fx:pay'] } }
    await scene.call(fx, buyer, { from: 'USD', to: 'EUR', amount: '10' }, { idempotencyKey: 'fx' })
    expect(await read(agent)).toMatchObject({
      usage: {
        used: '5.01',
        count: 3,
        byCategory: [
          { category: 'transfer', used: '5', count: 2 },
          { category: 'x402', used: '0.01', count: 1 },
        ],
      },
    })
  })

  it('lists the signers of the owner, not the other agents', async () => {
    const { signers } = await read(agent)
    expect(signers).toEqual([])
    const other = await scene.newOwner()
    const { address } = await scene.addEoa(other)
    const { principal } = await scene.addAgent(other)
    expect((await read(principal)).signers).toMatchObject([{ type: 'eoa', address }])
    expect(await read(other)).toMatchObject({ principal: 'session', status: 'active', usage: null })
  })

  it('shows a key its own decisions only', async () => {
    const { principal } = await scene.addAgent(owner)
    expect(await scene.call(decisions, principal, {})).toMatchObject({ decisions: [] })
    expect((await scene.call(decisions, agent, {})).decisions).toHaveLength(4)
    if (agent.kind !== 'key') throw new Error('the agent is no key')
    await expect(scene.call(decisions, principal, { keyId: agent.key.id })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  it('works for a paused key and says so', async () => {
    if (agent.kind !== 'key') throw new Error('the agent is no key')
    await scene.call(pause, owner, { id: agent.key.id })
    expect(await read(await reload())).toMatchObject({ status: 'paused', usage: { used: '5.01' } })
  })
})
