/** A revoked key stays readable with its history, and can do nothing. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newAgent } from './agent.ts'
import { overSharedAndPostgres } from './both-engines.ts'
import { newGuest } from './people.ts'

const keys = z.array(z.looseObject({ status: z.string() }))

overSharedAndPostgres('a revoked key', ({ gateway }) => {
  it('stays readable, with its usage and decisions', async () => {
    const owner = await newGuest(gateway().origin)
    const agent = await newAgent()
    const { body: made } = await owner.send('POST', '/api/agents/keys', {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['investing:trade'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '5' },
        categories: { allow: ['invest'] },
      },
    })
    const order = JSON.stringify({ symbol: 'VTI', side: 'buy', notional: '3' })
    await agent.fetch({ method: 'POST', url: `${gateway().origin}/api/investing/order`, body: order })
    const path = `/api/agents/keys/${String(made.agentId)}`
    await owner.send('DELETE', path)
    expect(await owner.send('GET', path)).toMatchObject({
      status: 200,
      body: { status: 'revoked', name: 'Bot' },
    })
    expect((await owner.send('GET', `${path}/usage`)).body.usage).toMatchObject({ count: 1 })
    const { body } = await owner.send('GET', `/api/agents/decisions?keyId=${String(made.agentId)}`)
    expect(body.decisions).toHaveLength(1)
    expect((await owner.send('GET', '/api/agents/keys')).body.keys).toEqual([])
    const revoked = keys.parse((await owner.send('GET', '/api/agents/keys?status=revoked')).body.keys)
    expect(revoked).toMatchObject([{ agentId: made.agentId, status: 'revoked' }])
    for (const method of ['PATCH', 'DELETE'] as const) {
      const change = method === 'PATCH' ? { status: 'active' } : undefined
      expect((await owner.send(method, path, change)).status).toBe(404)
    }
  })

  it('leaves the providers’ webhook routes in the API description', async () => {
    const response = await fetch(`${gateway().origin}/api/openapi.json`)
    const { paths } = z
      .object({ paths: z.record(z.string(), z.looseObject({})) })
      .parse(await response.json())
    for (const name of ['lithic', 'bridge', 'sumsub'])
      expect(paths[`/api/webhooks/${name}`]).toMatchObject({ post: { security: [expect.anything()] } })
  })
})
