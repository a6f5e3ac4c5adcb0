/** Pending requests of a session whose account is locked and recovered meanwhile, over HTTP. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overSharedAndPostgres } from './both-engines.ts'
import { newGuest, type Person, personFrom, requestJson } from './people.ts'

const journal = z.object({
  entries: z.array(z.looseObject({ action: z.string() })),
  nextCursor: z.string().nullable(),
})

/** Enough requests that each waits for the others. */
const WAITING = 60

overSharedAndPostgres('an ended session', ({ gateway }) => {
  const readActions = async (person: Person) => {
    const actions: string[] = []
    for (let after: string | null = ''; after !== null; ) {
      const cursor: string = after === '' ? '' : `&cursor=${after}`
      const { body } = await person.send('GET', `/api/security/journal?limit=100${cursor}`)
      const { entries, nextCursor } = journal.parse(body)
      actions.push(...entries.map(({ action }) => action))
      after = nextCursor
    }
    return actions.reverse()
  }

  it('makes no further change once its account is locked, even by requests already waiting', async () => {
    const { origin } = gateway()
    const person = await newGuest(origin)
    const newKey = (_: unknown, index: number) =>
      person.send('POST', '/api/developer/keys', { name: `Key ${index}`, scopes: ['wallets:read'] })
    const before = Array.from({ length: WAITING }, newKey)
    const locking = person.send('POST', '/api/security/lock', {})
    const behind = Array.from({ length: WAITING }, newKey)
    expect((await locking).status).toBe(200)
    const start = { channel: 'guest', destination: person.accountId }
    const { body } = await requestJson(origin, 'POST', '/api/auth/recovery/start', { body: start })
    const shown = { challengeId: body.challengeId, code: body.code }
    const back = await requestJson(origin, 'POST', '/api/auth/recovery/complete', { body: shown })
    expect(back.status).toBe(200)
    const answers = await Promise.all([...before, ...behind])
    const owner = personFrom(origin, back.body)
    const actions = await readActions(owner)
    const locked = actions.indexOf('account.locked')
    expect(actions.slice(locked)).toEqual(['account.locked', 'account.recovered'])
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(
      actions.filter((action) => action === 'key.created').length,
    )
    const refusals = new Set(answers.map(({ status }) => status))
    expect([...refusals].every((status) => [200, 401, 423, 503].includes(status))).toBe(true)
  }, 60_000)
})
