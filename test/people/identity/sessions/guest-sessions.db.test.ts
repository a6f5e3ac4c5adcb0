import { createSecretKey } from 'node:crypto'
import { SignJWT } from 'jose'
import { beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import type { Services } from '../../../../src/kernel/context.ts'
import { run } from '../../../../src/kernel/run.ts'
import { createAccount } from '../../../../src/people/identity/accounts.ts'
import { lockAccount, unlockAccount } from '../../../../src/people/identity/locks.ts'
import { signIn } from '../../../../src/people/identity/sessions/session-answer.ts'
import {
  authenticateSession,
  issueRenewal,
  renewGuestSession,
} from '../../../../src/people/identity/sessions/sessions.ts'
import { openWallet } from '../../../../src/rails/wallets/open-wallet.ts'
import webauthn from '../../../../tools/auth/webauthn.ts'
import { onBothEngines } from '../../../engines.ts'
import { buildCall, noon, origin, servicesOn } from '../../../kernel/scene.ts'
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
  const expectRefusal = (given: string, now: Date) =>
    expect(present(given, now)).rejects.toMatchObject({ code: 'unauthenticated' })
  const addPasskey = async (now: Date) => {
    const principal = {
      ...(await authenticateSession(services, { token, tokenHolder: 'client' }, now)).principal,
    }
    const call = async (input: object) =>
      (await run(webauthn, buildCall(services, principal, { now }), input)).body
    const { publicKey, challengeId } = challenge.parse(await call({ action: 'register', displayName: 'Ada' }))
    const credential = newAuthenticator(origin).create(publicKey)
    return continued.parse(await call({ action: 'register', challengeId, credential }))
  }

  const issueToken = async (given = token, at = noon) =>
    (await issueRenewal(services.settings, { sessionToken: given, at })).token
  const renew = (renewal: string, now: Date, through = services) => renewGuestSession(through, renewal, now)
  const notRenewed = (renewal: string, now: Date, code = 'unauthenticated', through = services) =>
    expect(renew(renewal, now, through)).rejects.toMatchObject({ code })

  it('has a token of 15 minutes, renewed by use as a person’s', async () => {
    await expect(present(token, new Date(noon.getTime() + 899_000))).resolves.toBeDefined()
    await expectRefusal(token, new Date(noon.getTime() + 900_000))
    const { renewed } = await present(token, new Date(noon.getTime() + 600_000))
    expect(renewed?.expiresAt).toEqual(new Date(noon.getTime() + 1_500_000))
  })

  it('is renewed by its browser for thirty days without use, to the second', async () => {
    const renewal = await issueToken()
    const last = new Date(inDays(30).getTime() - 1000)
    const { principal, renewed } = await renew(renewal, last)
    expect(principal).toMatchObject({ account: { id: accountId }, session: { tokenHolder: 'browser' } })
    expect(renewed?.expiresAt).toEqual(new Date(last.getTime() + 900_000))
    await expect(present(renewed?.sessionToken ?? '', last)).resolves.toBeDefined()
    const unused = await enter(services)
    await notRenewed(await issueToken(unused.token), inDays(30))
  })

  it('goes on for years by use, and an earlier renewal still ends', async () => {
    const first = await issueToken()
    let renewal = first
    for (let day = 29; day < 800; day += 29) {
      const { renewed, principal } = await renew(renewal, inDays(day))
      expect(principal.session.expiresAt).toEqual(inDays(day + 30))
      renewal = await issueToken(renewed?.sessionToken, inDays(day))
    }
    await notRenewed(first, inDays(100))
  })

  it('has a renewal that is no session token, and a session token that is no renewal', async () => {
    const renewal = await issueToken()
    await expectRefusal(renewal, noon)
    await notRenewed(token, noon)
    for (const given of ['', 'x', `${renewal}x`, renewal.slice(0, -4)]) await notRenewed(given, noon)
    const elsewhere = { ...services, settings: { ...services.settings, origin: 'https://other.example' } }
    await notRenewed(renewal, noon, 'unauthenticated', elsewhere)
  })

  it('replaces a token of thirty days that an earlier version issued', async () => {
    const { sid } = z
      .object({ sid: z.string() })
      .parse(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()))
    const old = await new SignJWT({ sid })
      .setProtectedHeader({ alg: 'HS256', typ: 'bursar-session+jwt' })
      .setSubject(accountId)
      .setIssuer(services.settings.origin)
      .setAudience(services.settings.origin)
      .setExpirationTime(inDays(30))
      .sign(createSecretKey(services.settings.sessionKey))
    expect((await present(old, inDays(3))).renewed?.expiresAt).toEqual(
      new Date(inDays(3).getTime() + 900_000),
    )
  })

  it('ends at once when it is revoked or its account locked', async () => {
    const renewal = await issueToken()
    await lockAccount(database(), { accountId, reason: 'person', at: noon })
    await notRenewed(renewal, inDays(1), 'account_locked')
    await unlockAccount(database(), { accountId, at: noon })
    await expectRefusal(token, noon)
    await notRenewed(renewal, inDays(1))
  })

  it('lasts as long as a person’s in production', async () => {
    const production = { ...services, settings: { ...services.settings, mode: 'production' as const } }
    const { expiresAt } = await enter(production)
    expect(expiresAt).toBe(new Date(noon.getTime() + 15 * 60_000).toISOString())
    await notRenewed(await issueToken(), noon, 'unauthenticated', production)
  })

  it('becomes a person’s with a passkey: it goes on, for at most twelve hours', async () => {
    const renewal = await issueToken()
    token = (await renew(renewal, inDays(3))).renewed?.sessionToken ?? ''
    const { account, sessionToken } = await addPasskey(inDays(3))
    expect(account).toEqual(expect.objectContaining({ guest: false, displayName: 'Ada' }))
    const after = (hours: number) => new Date(inDays(3).getTime() + hours * 3_600_000)
    await expectRefusal(sessionToken, after(0.25))
    await notRenewed(renewal, after(0.1))
    const { principal } = await present(token, after(0.1))
    expect(principal).toMatchObject({ account: { id: accountId, guest: false } })
    expect(principal.session.expiresAt).toEqual(after(12))
  })
})
