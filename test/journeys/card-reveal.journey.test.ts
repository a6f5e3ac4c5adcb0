/** A card's number is shown to its owner alone, over HTTP. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { luhnSum } from '../../src/providers/card-processor/sandbox-number.ts'
import { overSharedAndPostgres } from './both-engines.ts'
import { enrollMfa, newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const shown = z.strictObject({
  pan: z.string(),
  cvc: z.string(),
  expMonth: z.int(),
  expYear: z.int(),
  expiresAt: z.string(),
})

overSharedAndPostgres('a card’s number', ({ gateway }) => {
  const readCard = async (person: Person) => {
    const { body } = await person.send('POST', '/api/cards', { limits: { daily: '50' } })
    return z.looseObject({ id: z.string(), last4: z.string() }).parse(body)
  }
  const reveal = (person: Person, id: string, headers: Record<string, string> = {}) =>
    person.send('POST', `/api/cards/${id}/reveal`, {}, headers)

  it('is a test number that is the same each time, and is hidden after a minute', async () => {
    const guest = await newGuest(gateway().origin)
    const [card, other] = [await readCard(guest), await readCard(guest)]
    const first = shown.parse((await reveal(guest, card.id)).body)
    const again = shown.parse((await reveal(guest, card.id)).body)
    expect(first.pan).toMatch(new RegExp(`^4000\\d{8}${card.last4}$`))
    expect(luhnSum(first.pan) % 10).toBe(0)
    expect(first.cvc).toMatch(/^\d{3}$/)
    expect([again.pan, again.cvc]).toEqual([first.pan, first.cvc])
    expect(shown.parse((await reveal(guest, other.id)).body).pan).not.toBe(first.pan)
    const shownMs = Date.parse(first.expiresAt) - Date.now()
    expect(shownMs).toBeGreaterThan(0)
    expect(shownMs).toBeLessThanOrEqual(60_000)
  })

  it('is stored neither with an idempotency key nor in the journal, and no cache keeps it', async () => {
    const guest = await newGuest(gateway().origin)
    const card = await readCard(guest)
    const named = { 'idempotency-key': 'reveal-1' }
    const { pan, cvc } = shown.parse((await reveal(guest, card.id, named)).body)
    const { status, body } = await reveal(guest, card.id, named)
    expect([status, body.pan, body.cvc]).toEqual([200, null, null])
    const { body: journal } = await guest.send('GET', '/api/security/journal')
    expect(JSON.stringify(journal)).toContain('"card.revealed"')
    expect(JSON.stringify(journal)).not.toContain(pan)
    expect(JSON.stringify(journal)).not.toContain(`"${cvc}"`)
    const answer = await fetch(`${gateway().origin}/api/cards/${card.id}/reveal`, {
      method: 'POST',
      headers: { authorization: `Bearer ${guest.token}` },
    })
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it('is shown to no key, no other person, and not without a fresh second factor', async () => {
    const address = newMailbox('reveal')
    const owner = await signInByEmail(gateway().origin, address)
    const card = await readCard(owner)
    const policy = {
      perTransaction: { max: '10' },
      dailyBudget: { max: '10' },
      categories: { allow: ['card'] },
    }
    const made = { name: 'Cards', scopes: ['cards:read', 'cards:write'], policy }
    const { body: key } = await owner.send('POST', '/api/developer/keys', made)
    const headers = { authorization: `Bearer ${String(key.key)}` }
    const byKey = await requestJson(gateway().origin, 'POST', `/api/cards/${card.id}/reveal`, { headers })
    expect(byKey.status).toBe(403)
    const stranger = await newGuest(gateway().origin)
    expect((await reveal(stranger, card.id)).status).toBe(404)
    await enrollMfa(owner)
    const stale = await signInByEmail(gateway().origin, address)
    const refused = await reveal(stale, card.id)
    expect([refused.status, refused.body.code]).toEqual([401, 'step_up_required'])
    expect((await reveal(owner, card.id)).status).toBe(200)
  })
})
