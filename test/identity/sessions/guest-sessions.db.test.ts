import { beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { createAccount } from '../../../src/identity/accounts.ts'
import { signIn } from '../../../src/identity/sessions/session-answer.ts'
import { authenticateSession } from '../../../src/identity/sessions/sessions.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { openWallet } from '../../../src/wallets/open-wallet.ts'
import webauthn from '../../../tools/auth/webauthn.ts'
import { onBothEngines } from '../../engines.ts'
import { callOf, noon, origin, servicesOn } from '../../kernel/scene.ts'
import { newAuthenticator } from '../authenticator.ts'
import { challenge } from '../passkey-scene.ts'

const inDays = (days: number) => new Date(noon.getTime() + days * 86_400_000)
const continued = z.object({
  account: z.object({ guest: z.boolean(), displayName: z.string() }),
  sessionToken: z.string(),
})

onBothEngines('a guest’s session', (database) => {
  let services: Services
  let token: string
  let accountId: string
  beforeEach(async () => {
    services = await servicesOn(database())
    ;({ token, accountId } = await enter(services))
  })
  const enter = async (through: Services) => {
    const account = await createAccount(through, { displayName: 'Guest', guest: true, at: noon })
    await openWallet(through, { accountId: account.id, at: noon })
    const answered = await signIn(through, { account, method: 'guest', at: noon })
    return { token: answered.sessionToken, accountId: account.id, expiresAt: answered.expiresAt }
  }
  const present = (given: string, now: Date, through = services) =>
    authenticateSession(through, { token: given, tokenHolder: 'browser' }, now)
  const refused = (given: string, now: Date) =>
    expect(present(given, now)).rejects.toMatchObject({ code: 'unauthenticated' })
  const addPasskey = async (now: Date) => {
    const principal = {
      ...(await authenticateSession(services, { token, tokenHolder: 'client' }, now)).principal,
    }
    const call = async (input: object) =>
      (await run(webauthn, callOf(services, principal, { now }), input)).body
    const { publicKey, challengeId } = challenge.parse(await call({ action: 'register', displayName: 'Ada' }))
    const credential = newAuthenticator(origin).create(publicKey)
    return continued.parse(await call({ action: 'register', challengeId, credential }))
  }

  it('lasts thirty days without use, to the second', async () => {
    await expect(present(token, new Date(inDays(30).getTime() - 1000))).resolves.toBeDefined()
    const { token: unused } = await enter(services)
    await refused(unused, inDays(30))
  })

  it('is renewed by use, at most once a day, and goes on for years', async () => {
    expect((await present(token, inDays(0.9))).renewed).toBeNull()
    let current = token
    for (let day = 29; day < 800; day += 29) {
      const { renewed } = await present(current, inDays(day))
      expect(renewed?.expiresAt).toEqual(inDays(day + 30))
      current = renewed?.sessionToken ?? ''
    }
    await refused(token, inDays(100))
  })

  it('ends at once when it is revoked', async () => {
    await database()
      .kysely.updateTable('session')
      .set({ revoked_at: noon })
      .where('account_id', '=', accountId)
      .execute()
    await refused(token, inDays(1))
  })

  it('lasts as long as a person’s in production', async () => {
    const production = { ...services, settings: { ...services.settings, mode: 'production' as const } }
    const { expiresAt } = await enter(production)
    expect(expiresAt).toBe(new Date(noon.getTime() + 15 * 60_000).toISOString())
  })

  it('becomes a person’s with a passkey: it goes on, for at most twelve hours', async () => {
    const { account, sessionToken } = await addPasskey(inDays(3))
    expect(account).toEqual(expect.objectContaining({ guest: false, displayName: 'Ada' }))
    const after = (hours: number) => new Date(inDays(3).getTime() + hours * 3_600_000)
    await refused(sessionToken, after(0.25))
    const { principal, renewed } = await present(token, after(0.1))
    expect(principal).toMatchObject({ account: { id: accountId, guest: false } })
    expect(renewed?.expiresAt).toEqual(after(0.35))
    await refused(token, after(12))
  })
})
