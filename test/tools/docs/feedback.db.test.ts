import { expect, it } from 'vitest'
import { run } from '../../../src/kernel/run.ts'
import feedback from '../../../tools/docs/feedback.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, servicesOn } from '../../kernel/scene.ts'

onBothEngines('feedback on a page', (database) => {
  const vote = async (input: unknown) =>
    (await run(feedback, buildCall(await servicesOn(database()), { kind: 'public' }), input)).body

  it('is counted by page and direction, also under concurrent votes', async () => {
    expect(await vote({ page: 'docs/x402', vote: 'down' })).toEqual({ page: 'docs/x402', up: 0, down: 1 })
    await Promise.all(Array.from({ length: 10 }, () => vote({ page: '/docs/x402', vote: 'up' })))
    expect(await vote({ page: 'docs/x402', vote: 'up' })).toEqual({ page: 'docs/x402', up: 11, down: 1 })
    expect(await vote({ page: 'docs/mcp', vote: 'up' })).toEqual({ page: 'docs/mcp', up: 1, down: 0 })
  })

  it('stores nothing but the counters', async () => {
    const rows = await database().kysely.selectFrom('docs_feedback').selectAll().orderBy('page').execute()
    expect(rows).toEqual([
      { page: 'docs/mcp', up: 1n, down: 0n },
      { page: 'docs/x402', up: 11n, down: 1n },
    ])
  })

  it.each([
    {},
    { page: 'docs', vote: 'sideways' },
    { page: '../secrets', vote: 'up' },
    { page: 'docs?token=x', vote: 'up' },
    { page: 'a'.repeat(201), vote: 'up' },
    { page: 'docs', vote: 'up', voter: 'me' },
  ])('rejects %j', async (input) => {
    await expect(vote(input)).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
