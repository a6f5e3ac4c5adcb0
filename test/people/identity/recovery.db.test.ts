import { expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import type { Account } from '../../../src/core/base/principal.ts'
import { lockAccount, recordFailedFactor } from '../../../src/people/identity/locks.ts'
import { countPasskeys } from '../../../src/people/identity/passkeys/passkeys.ts'
import { completeRecovery, type RecoveryPasskeys } from '../../../src/people/identity/recovery.ts'
import { openSession } from '../../../src/people/identity/sessions/sessions.ts'
import { findAccount } from '../../../src/people/identity/store.ts'
import type { Database } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { noon } from '../../kernel/scene.ts'
import { buildLimits, codeScene, countFailures, differentCode, inSeconds, newMailbox } from './code-scene.ts'

const refused = { code: 'unauthenticated', message: 'The code is wrong, already used or expired.' }

/** The members of an assertion that the stand-in for passkeys reads. */
const credential = {
  id: 'Y3JlZGVudGlhbA',
  rawId: 'Y3JlZGVudGlhbA',
  type: 'public-key' as const,
  response: { clientDataJSON: 'e30', authenticatorData: 'AA', signature: 'AA' },
}

const liveSessions = (database: Database, accountId: string) =>
  database.kysely
    .selectFrom('session')
    .select('method')
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .execute()

const addPasskey = (database: Database, accountId: string) =>
  database.kysely
    .insertInto('passkey')
    .values({
      credential_id: `credential-${accountId}`,
      id: newId('pk', noon),
      account_id: accountId,
      public_key: Buffer.from([1]),
      counter: 0n,
      transports: [],
      device_type: 'multiDevice',
      backed_up: true,
      created_at: noon,
      last_used_at: null,
    })
    .execute()

onBothEngines('recovery', (database) => {
  const lockByFailures = async (
    scene: Awaited<ReturnType<typeof codeScene>>,
    mailbox: string,
  ): Promise<Account> => {
    const account = await scene.person(mailbox)
    await lockAccount(database(), { accountId: account.id, reason: 'person', at: noon })
    return account
  }

  it('unlocks the account, ends its sessions, resets its failures and opens a session', async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const { id } = await scene.person(mailbox)
    await openSession(scene.services, { accountId: id, method: 'email', at: noon })
    for (let tries = 0; tries < 3; tries += 1)
      await recordFailedFactor(database(), { accountId: id, at: noon })
    expect(await countFailures(database(), id)).toBe(3)
    await lockAccount(database(), { accountId: id, reason: 'person', at: noon })
    const { account, sessionToken } = await scene.complete(await scene.recover(mailbox))
    expect([account.id, sessionToken === '']).toEqual([id, false])
    expect((await findAccount(database(), id))?.status).toBe('active')
    expect(await liveSessions(database(), id)).toEqual([{ method: 'recovery' }])
    expect(await countFailures(database(), id)).toBe(0)
  })

  it('also recovers an unlocked account, and ends every session of it', async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const { id } = await scene.person(mailbox)
    await openSession(scene.services, { accountId: id, method: 'email', at: noon })
    await scene.complete(await scene.recover(mailbox))
    expect(await liveSessions(database(), id)).toEqual([{ method: 'recovery' }])
  })

  it('rejects a wrong, used, expired or unknown code, and one without an account, identically', async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    await lockByFailures(scene, mailbox)
    const given = await scene.recover(mailbox)
    await expect(scene.complete({ ...given, code: differentCode(given.code) })).rejects.toMatchObject(refused)
    await expect(scene.complete(given, { now: inSeconds(600) })).rejects.toMatchObject(refused)
    await expect(scene.verify(given)).rejects.toMatchObject(refused)
    await scene.complete(given)
    await expect(scene.complete(given)).rejects.toMatchObject(refused)
    await expect(scene.complete(await scene.recover(newMailbox()))).rejects.toMatchObject(refused)
    await expect(
      scene.complete({ challengeId: 'chal_01k00000000000000000000000', code: '000000' }),
    ).rejects.toMatchObject(refused)
  })

  it('is invalid after five wrong tries, which lock no account', async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const { id } = await scene.person(mailbox)
    for (let round = 0; round < 2; round += 1) {
      const given = await scene.recover(mailbox)
      const guesses = Array.from({ length: 12 }, () =>
        scene.complete({ ...given, code: differentCode(given.code) }),
      )
      await Promise.allSettled(guesses)
      await expect(scene.complete(given)).rejects.toMatchObject(refused)
    }
    expect((await findAccount(database(), id))?.status).toBe('active')
  })

  it('requires a passkey too if there is one; the code stays valid, and its tries count', async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const { id } = await lockByFailures(scene, mailbox)
    await addPasskey(database(), id)
    const given = await scene.recover(mailbox)
    for (let tries = 0; tries < 5; tries += 1)
      await expect(scene.complete(given)).rejects.toMatchObject({ code: 'step_up_required', status: 401 })
    await expect(scene.complete(given)).rejects.toMatchObject(refused)
    expect((await findAccount(database(), id))?.status).toBe('locked')
    expect(await countFailures(database(), id)).toBe(0)
  })

  it('accepts an assertion of that account only', async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const { id } = await lockByFailures(scene, mailbox)
    await addPasskey(database(), id)
    const { challengeId, code } = await scene.recover(mailbox)
    const shown: unknown[] = []
    const asserting = (accountId: string): Pick<RecoveryPasskeys, 'assertPasskey' | 'countPasskeys'> => ({
      countPasskeys,
      assertPasskey: async (_parts, { credential: given }) => {
        shown.push(given)
        return { accountId }
      },
    })
    const complete = (accountId: string) =>
      completeRecovery(
        { ...scene.services, passkeys: asserting(accountId) },
        { challengeId, code, credential, now: noon },
      )
    await expect(complete((await scene.person(newMailbox())).id)).rejects.toMatchObject(refused)
    expect((await findAccount(database(), id))?.status).toBe('locked')
    await expect(complete(id)).resolves.toMatchObject({ session: { account: { id } } })
    expect(shown).toEqual([credential, credential])
  })

  it('does not reveal whether an account exists: same answers, same messages, same limits', async () => {
    const scene = await codeScene(database(), { rateLimits: buildLimits() })
    const [known, unknown] = [newMailbox(), newMailbox()]
    const { id } = await lockByFailures(scene, known)
    await addPasskey(database(), id)
    const answersFor = async (mailbox: string) => {
      const given = await scene.recover(mailbox)
      const { challengeId: _, publicKey, ...answer } = given.answer
      const wrong = await scene
        .complete({ ...given, code: differentCode(given.code) })
        .catch((error: unknown) => error)
      const soon = await scene.recover(mailbox).catch((error: unknown) => error)
      return { answer, options: Object.keys(publicKey ?? {}), wrong, soon }
    }
    expect(await answersFor(known)).toEqual(await answersFor(unknown))
    expect(scene.sent.map(({ text }) => text.slice(6))).toEqual(Array(2).fill(scene.sent[0]?.text.slice(6)))
    expect(scene.sent[0]?.text).toContain('account recovery code')
  })

  it('has budgets of its own, separate from sign-in codes', async () => {
    const scene = await codeScene(database(), { rateLimits: buildLimits() })
    const mailbox = newMailbox()
    await scene.start(mailbox)
    await expect(scene.recover(mailbox)).resolves.toMatchObject({ answer: { resendAfter: 60 } })
    await expect(scene.recover(mailbox, inSeconds(30))).rejects.toMatchObject({
      code: 'rate_limited',
      members: { retryAfter: 30 },
    })
    for (const minute of [11, 22, 33, 44]) await scene.recover(mailbox, inSeconds(minute * 60))
    await expect(scene.recover(mailbox, inSeconds(55 * 60))).rejects.toMatchObject({
      members: { retryAfter: 300 },
    })
    await expect(scene.start(mailbox, inSeconds(55 * 60))).resolves.toBeDefined()
  })

  it('shares no cap of the day with sign-in codes', async () => {
    const scene = await codeScene(database(), {
      rateLimits: buildLimits({ otp_total: { count: 1, seconds: 86_400 } }),
    })
    await scene.start(newMailbox())
    await expect(scene.start(newMailbox())).rejects.toMatchObject({ code: 'rate_limited' })
    await scene.recover(newMailbox())
    await expect(scene.recover(newMailbox())).rejects.toMatchObject({ code: 'rate_limited' })
  })
})
