import { expect, it } from 'vitest'
import { createApprovals } from '../../mcp/approval.ts'
import { onBothEngines } from '../engines.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../kernel/scene.ts'

onBothEngines('calls of a key that wait for its owner', (database) => {
  it('are limited to ten at once: the eleventh is answered immediately', async () => {
    const approvals = createApprovals(await servicesOn(database()))
    const { account } = await newPerson(database())
    const buildCaller = (key: ReturnType<typeof buildKeyPrincipal>) => ({
      principal: key,
      requestId: 'req_test',
      now: noon,
      clientAddress: '203.0.113.7',
      refundCounts: async () => {},
      toolsets: null,
    })
    const given = new AbortController()
    const wait = (key: ReturnType<typeof buildKeyPrincipal>, at: number) =>
      approvals.awaitDecision(
        buildCaller(key),
        { id: `appr_${at}`, message: '', url: '' },
        { withinMs: 60_000, signal: given.signal },
      )
    const [one, other] = [buildKeyPrincipal(account), buildKeyPrincipal(account)]
    const waiting = Array.from({ length: 10 }, (_, at) => wait(one, at))
    expect(await wait(one, 10)).toBeNull()
    const next = wait(other, 11)
    const first = await Promise.race([
      ...waiting,
      next,
      new Promise((done) => setTimeout(done, 100, 'waits')),
    ])
    expect(first).toBe('waits')
    given.abort()
    expect(await Promise.all([...waiting, next])).toEqual(Array(11).fill(null))
  })
})
