/** Sign-in with identity providers: account matching, and the lifetime of a state. On both engines. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Failure } from '../../../../src/core/failures/failure.ts'
import type { Services } from '../../../../src/kernel/context.ts'
import { run } from '../../../../src/kernel/run.ts'
import { lockAccount } from '../../../../src/people/identity/locks.ts'
import type {
  IdentityProvider,
  ProvidedIdentity,
  SignInSecrets,
} from '../../../../src/providers/identity-provider/port.ts'
import identityProvider from '../../../../tools/auth/identity-provider.ts'
import { onBothEngines } from '../../../engines.ts'
import { buildCall, noon, origin, servicesOn } from '../../../kernel/scene.ts'

const started = z.strictObject({ authorizationUrl: z.string(), state: z.string() })
const session = z.strictObject({
  personId: z.string(),
  role: z.literal('owner'),
  account: z.looseObject({ id: z.string(), displayName: z.string(), guest: z.literal(false) }),
  sessionToken: z.string(),
  expiresAt: z.string(),
})

/** An in-memory provider that accepts any code and returns the identity in `says`. */
function scriptedProvider(issuer: string) {
  const seen: { secrets: SignInSecrets; redirectUri: string }[] = []
  const script: { says: Omit<ProvidedIdentity, 'issuer'> | Failure } = {
    says: { subject: 'ada', displayName: 'Ada' },
  }
  const provider: IdentityProvider = {
    authorizationUrl: async (secrets, redirectUri) => {
      seen.push({ secrets, redirectUri })
      return `${issuer}/auth?state=${secrets.state}`
    },
    identify: async (_callback, secrets, redirectUri) => {
      seen.push({ secrets, redirectUri })
      if (script.says instanceof Failure) throw script.says
      return { issuer, ...script.says }
    },
  }
  return { provider, seen, script }
}

onBothEngines('federation', (database) => {
  const google = scriptedProvider('https://google.example')
  const apple = scriptedProvider('https://apple.example')
  let services: Services
  let now = noon
  beforeAll(async () => {
    services = await servicesOn(database(), {
      identityProviders: new Map([
        ['google', google.provider],
        ['apple', apple.provider],
      ]),
    })
  })
  beforeEach(async () => {
    now = noon
    for (const { script, seen } of [google, apple]) {
      script.says = { subject: 'ada', displayName: 'Ada' }
      seen.length = 0
    }
    await database().kysely.deleteFrom('federated_identity').execute()
  })

  const call = async (input: Record<string, unknown>) =>
    (await run(identityProvider, buildCall(services, { kind: 'public' }, { now }), input)).body
  const begin = async (provider = 'google') => started.parse(await call({ provider }))
  const finish = async (state: string, provider = 'google') =>
    session.parse(await call({ provider, code: 'a code', state }))
  const signIn = async (provider = 'google') => finish((await begin(provider)).state, provider)
  const accounts = async () =>
    (await database().kysely.selectFrom('federated_identity').select('account_id').execute()).length
  const refusal = (code: string) => ({ name: 'Failure', code })

  describe('a sign-in', () => {
    it('redirects to the provider, which redirects to its callback page', async () => {
      const { authorizationUrl, state } = await begin()
      expect(authorizationUrl).toBe(`https://google.example/auth?state=${state}`)
      await finish(state)
      const [sent, answered] = google.seen
      expect(answered).toEqual(sent)
      expect(sent?.redirectUri).toBe(`${origin}/sign-in/google`)
      const { secrets } = sent ?? {}
      for (const secret of Object.values(secrets ?? {})) expect(secret).toMatch(/^[\w-]{43}$/)
      expect(new Set(Object.values(secrets ?? {})).size).toBe(3)
    })

    it('stores no state in a form that a reader could use', async () => {
      const { state } = await begin()
      const rows = await database().kysely.selectFrom('challenge').selectAll().execute()
      expect(JSON.stringify(rows)).not.toContain(state)
    })

    it('opens no session while the provider is unavailable', async () => {
      const before = await database().kysely.selectFrom('challenge').select('id').execute()
      const broken = {
        ...services,
        identityProviders: new Map([
          [
            'google',
            {
              ...google.provider,
              authorizationUrl: () =>
                Promise.reject(new Failure('provider_unavailable', 'Away.', { retryAfter: 5 })),
            },
          ],
        ]),
      }
      await expect(
        run(identityProvider, buildCall(broken, { kind: 'public' }), { provider: 'google' }),
      ).rejects.toMatchObject(refusal('provider_unavailable'))
      expect(await database().kysely.selectFrom('challenge').select('id').execute()).toHaveLength(
        before.length,
      )
    })

    it('gives a new person an account and a wallet, with the provider’s name for them', async () => {
      const { account } = await signIn()
      expect(account.displayName).toBe('Ada')
      const wallet = await database()
        .kysely.selectFrom('wallet')
        .selectAll()
        .where('account_id', '=', account.id)
        .execute()
      expect(wallet).toHaveLength(1)
      const [row] = await database()
        .kysely.selectFrom('session')
        .select('method')
        .where('account_id', '=', account.id)
        .execute()
      expect(row?.method).toBe('identity_provider')
    })

    it('uses the name Person for a person without one', async () => {
      google.script.says = { subject: 'nameless', displayName: null }
      expect((await signIn()).account.displayName).toBe('Person')
    })
  })

  describe('an account', () => {
    it('is found by issuer and subject, despite a changed name', async () => {
      const first = await signIn()
      google.script.says = { subject: 'ada', displayName: 'Countess Lovelace' }
      const second = await signIn()
      expect(second.account).toMatchObject({ id: first.account.id, displayName: 'Ada' })
      expect(second.sessionToken).not.toBe(first.sessionToken)
    })

    it('differs by subject, and by issuer for the same subject', async () => {
      const ids = [(await signIn()).account.id, (await signIn('apple')).account.id]
      google.script.says = { subject: 'bob', displayName: 'Ada' }
      ids.push((await signIn()).account.id)
      expect(new Set(ids).size).toBe(3)
    })

    it('is one under concurrent first sign-ins', async () => {
      const states = await Promise.all(Array.from({ length: 6 }, () => begin()))
      const sessions = await Promise.all(states.map(({ state }) => finish(state)))
      expect(new Set(sessions.map(({ account }) => account.id)).size).toBe(1)
      expect(await accounts()).toBe(1)
    })

    it('stays locked', async () => {
      const { account } = await signIn()
      await lockAccount(database(), { accountId: account.id, reason: 'person', at: noon })
      await expect(signIn()).rejects.toMatchObject(refusal('account_locked'))
    })
  })

  describe('a state', () => {
    const refused = refusal('unauthenticated')

    it('is valid once', async () => {
      const { state } = await begin()
      await finish(state)
      await expect(finish(state)).rejects.toMatchObject(refused)
    })

    it('is valid once under concurrent use', async () => {
      const { state } = await begin()
      const tries = await Promise.allSettled([1, 2, 3].map(() => finish(state)))
      expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    })

    it('is spent by an answer that the provider rejects', async () => {
      const { state } = await begin()
      google.script.says = new Failure('unauthenticated', 'No.')
      await expect(finish(state)).rejects.toMatchObject(refused)
      google.script.says = { subject: 'ada', displayName: 'Ada' }
      await expect(finish(state)).rejects.toMatchObject(refused)
      expect(await accounts()).toBe(0)
    })

    it('is invalid at another provider, and spent by the attempt', async () => {
      const { state } = await begin('google')
      await expect(finish(state, 'apple')).rejects.toMatchObject(refused)
      await expect(finish(state, 'google')).rejects.toMatchObject(refused)
      expect(google.seen).toHaveLength(1)
      expect(apple.seen).toHaveLength(0)
    })

    it('expires after ten minutes', async () => {
      const [early, late] = [await begin(), await begin()]
      now = new Date(noon.getTime() + 10 * 60_000 - 1)
      await finish(early.state)
      now = new Date(noon.getTime() + 10 * 60_000)
      await expect(finish(late.state)).rejects.toMatchObject(refused)
    })

    it('cannot be invented', async () => {
      await expect(finish('made-up')).rejects.toMatchObject(refused)
    })
  })

  it('rejects an unknown provider', async () => {
    await expect(call({ provider: 'nosuch' })).rejects.toMatchObject(refusal('not_found'))
  })

  it.each([{ code: 'x' }, { state: 'x' }, { iss: 'https://x.example' }, { code: 'x', iss: 'x' }])(
    'rejects an incomplete answer: %o',
    async (half) => {
      await expect(call({ provider: 'google', ...half })).rejects.toMatchObject(refusal('invalid_request'))
    },
  )
})
