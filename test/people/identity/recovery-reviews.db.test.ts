/** Recoveries that wait for an administrator: once each, also under concurrent requests, and with every proof. */
import { expect, it } from 'vitest'
import type { Principal } from '../../../src/core/base/principal.ts'
import { run } from '../../../src/kernel/run.ts'
import { lockAccount } from '../../../src/people/identity/locks.ts'
import { decideRecoveryReview, listRecoveryReviews } from '../../../src/people/identity/recovery-reviews.ts'
import { findAccount } from '../../../src/people/identity/store.ts'
import recoveryComplete from '../../../tools/auth/recovery/complete.ts'
import webauthn from '../../../tools/auth/webauthn.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, origin } from '../../kernel/scene.ts'
import { newAuthenticator } from './authenticator.ts'
import { codeScene, inSeconds, newMailbox } from './code-scene.ts'

const waiting = { status: 'review' }

onBothEngines('a recovery from an administrator’s lock', (database) => {
  const lockedOut = async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const account = await scene.person(mailbox)
    await lockAccount(database(), { accountId: account.id, reason: 'admin', at: noon })
    const complete = async (given: object, now = noon) =>
      (await run(recoveryComplete, buildCall(scene.services, { kind: 'public' }, { now }), given)).body
    const ask = async (now = noon) => {
      const { challengeId, code } = await scene.recover(mailbox, now)
      return complete({ challengeId, code }, now)
    }
    return { scene, mailbox, accountId: account.id, account, complete, ask }
  }
  const readReviews = async (accountId: string, status: 'open' | 'released' | 'blocked' = 'open') =>
    (await listRecoveryReviews(database(), { status, page: { after: null, limit: 100 } })).filter(
      (review) => review.accountId === accountId,
    )
  const decide = async (id: string | undefined, status: 'released' | 'blocked', by?: string) => {
    const decidedBy = by ?? (await newPerson(database())).account.id
    const decision = { id: id ?? '', decidedBy, status, reason: 'Spoke to the owner.', at: noon }
    return database().transaction((connection) => decideRecoveryReview(connection, decision))
  }
  const readState = async (accountId: string) => {
    const [row] = await database()
      .kysely.selectFrom('account')
      .select(['status', 'locked_at', 'lock_reason'])
      .where('id', '=', accountId)
      .execute()
    const sessions = await database()
      .kysely.selectFrom('session')
      .select('id')
      .where('account_id', '=', accountId)
      .where('revoked_at', 'is', null)
      .execute()
    return { ...row, sessions: sessions.length }
  }

  it('is one review, however often and at once it is asked for, and changes nothing of the account', async () => {
    const { scene, mailbox, accountId, complete } = await lockedOut()
    const before = await readState(accountId)
    for (let round = 0; round < 2; round += 1) {
      const given = await Promise.all(
        [0, 1, 2].map((n) => scene.recover(mailbox, noon, { clientAddress: `192.0.2.${n}` })),
      )
      const answers = await Promise.allSettled(
        given.map(({ challengeId, code }) => complete({ challengeId, code })),
      )
      const fulfilled = answers.filter(({ status }) => status === 'fulfilled')
      expect(fulfilled.length).toBeGreaterThan(0)
      for (const answer of answers) if (answer.status === 'fulfilled') expect(answer.value).toEqual(waiting)
    }
    expect(await readReviews(accountId)).toHaveLength(1)
    expect(await readState(accountId)).toEqual(before)
  })

  it('needs the passkey too where there is one, and says that it was shown', async () => {
    const { scene, mailbox, accountId, account, complete } = await lockedOut()
    const device = newAuthenticator(origin)
    const stranger = await newPerson(database())
    const as: Principal = { ...stranger, account, person: { ...stranger.person, id: account.id } }
    const call = async (input: object) => (await run(webauthn, buildCall(scene.services, as), input)).body
    await database()
      .kysely.updateTable('account')
      .set({ status: 'active', locked_at: null, lock_reason: null })
      .where('id', '=', accountId)
      .execute()
    const { challengeId: made, publicKey } = await call({ action: 'register' })
    await call({ action: 'register', challengeId: made, credential: device.create(publicKey) })
    await lockAccount(database(), { accountId, reason: 'admin', at: noon })
    const { answer, challengeId, code } = await scene.recover(mailbox)
    await expect(complete({ challengeId, code })).rejects.toMatchObject({ code: 'step_up_required' })
    expect(await readReviews(accountId)).toEqual([])
    const credential = device.get(answer.publicKey)
    expect(await complete({ challengeId, code, credential })).toEqual(waiting)
    expect(await readReviews(accountId)).toMatchObject([{ proofs: ['code', 'passkey'] }])
  })

  it('is decided once, under concurrent decisions too', async () => {
    const { accountId, ask } = await lockedOut()
    await ask()
    const [review] = await readReviews(accountId)
    const outcomes = await Promise.allSettled([
      decide(review?.id, 'released'),
      decide(review?.id, 'blocked'),
      decide(review?.id, 'released'),
    ])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const status = (await findAccount(database(), accountId))?.status
    const released = await readReviews(accountId, 'released')
    expect(status).toBe(released.length === 1 ? 'active' : 'locked')
  })

  it('is not decided by the administrator who waits for it', async () => {
    const { accountId, ask } = await lockedOut()
    await ask()
    const [review] = await readReviews(accountId)
    await expect(decide(review?.id, 'released', accountId)).rejects.toMatchObject({ code: 'conflict' })
    expect((await findAccount(database(), accountId))?.status).toBe('locked')
  })

  it('is unknown under another id, which stays for other kinds of reviews', async () => {
    await expect(decide('rev_00000000000000000000000000', 'released')).resolves.toBeUndefined()
  })

  it('has an answer of its own for each later lock', async () => {
    const { accountId, ask } = await lockedOut()
    await ask()
    await decide((await readReviews(accountId))[0]?.id, 'blocked')
    const refused = { code: 'account_locked', message: 'An administrator has refused to unlock the account.' }
    await expect(ask()).rejects.toMatchObject(refused)
    await database()
      .kysely.updateTable('account')
      .set({ locked_at: inSeconds(60) })
      .where('id', '=', accountId)
      .execute()
    expect(await ask(inSeconds(61))).toEqual(waiting)
  })
})
