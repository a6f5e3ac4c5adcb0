/** Where the owner decides on an OAuth client: which scopes it gets, and what it may spend. A yes becomes a key. */
import type { Provider } from 'oidc-provider'
import { z } from 'zod'
import { parseJson } from '../../base/json.ts'
import { visibleText } from '../../base/untrusted-text.ts'
import { Failure } from '../../failures/failure.ts'
import { policyHashOf } from '../../identity/keys/agent-keys.ts'
import { isScope, type Scope } from '../../identity/keys/grantable.ts'
import { grantMembers, refineGrant } from '../../identity/keys/key-grant.ts'
import { keyState } from '../../identity/keys/key-state.ts'
import { agentKinds, revokeKey } from '../../identity/keys/owned-keys.ts'
import { resourceOf } from '../../identity/oauth/oauth-tokens.ts'
import { insertKey } from '../../identity/store.ts'
import { personOf, type Services } from '../../kernel/context.ts'
import { fingerprintOf } from '../../kernel/fingerprint.ts'
import { requireStepUp } from '../../kernel/gates/step-up.ts'
import { requireStanding } from '../../kernel/standing.ts'
import { callerOf } from '../authenticate.ts'
import { nodePairOf } from '../oidc/handle-with-node-response.ts'
import { extendRecord, grantsOf, insertIfAbsent } from '../oidc/storage.ts'
import { ConsentPage, EndedPage } from '../pages/consent.tsx'
import { pageHeaders } from '../pages/headers.ts'
import type { HttpContext } from '../request.ts'

/** Where the library's grants are kept. */
const GRANT_MODEL = 'oauth Grant'

/** Where clients that registered are kept, and how long after somebody let them in: as long as a grant lasts. */
const CLIENT_MODEL = 'oauth Client'
const CLIENT_SECONDS = 365 * 24 * 60 * 60

/** Who saw the page: somebody else may have signed in since. */
const accountId = z.string().optional()

const decision = z.discriminatedUnion('decision', [
  z.strictObject({ decision: z.literal('deny'), accountId }),
  z
    .strictObject({
      decision: z.literal('approve'),
      accountId,
      scopes: grantMembers.scopes,
      policy: grantMembers.policy,
      keepEarlier: z.boolean().optional(),
    })
    .superRefine(refineGrant),
])

interface Parts {
  readonly provider: Provider
  readonly services: Services
}

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

/** Shows the page, or takes the decision. */
export async function answerConsent(c: HttpContext, parts: Parts): Promise<Response> {
  const interaction = await interactionOf(c, parts.provider)
  switch (c.req.method) {
    case 'GET':
    case 'HEAD':
      return show(c, parts, interaction)
    case 'POST':
      return decide(c, parts, interaction)
    default:
      c.set('allow', 'GET, POST')
      throw new Failure('method_not_allowed', `${c.req.method} is not possible here; GET, POST is.`)
  }
}

/** The authorization that this very browser has begun; null where it has ended, or is another's. */
async function interactionOf(c: HttpContext, provider: Provider): Promise<Interaction | null> {
  const { incoming, outgoing } = nodePairOf(c)
  const details = await provider.interactionDetails(incoming, outgoing).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'SessionNotFound') return null
    throw error
  })
  return details !== null && c.req.path.endsWith(`/${details.uid}`) ? details : null
}

async function show(
  c: HttpContext,
  { provider, services }: Parts,
  interaction: Interaction | null,
): Promise<Response> {
  if (interaction === null) return page(c, <EndedPage />, 400)
  const { principal } = c.get('caller')
  if (principal.kind !== 'session') return c.redirect(`/sign-in?next=${encodeURIComponent(c.req.path)}`, 302)
  const { client_id: clientId, redirect_uri: redirectUri } = interaction.params
  const client = await provider.Client.find(String(clientId))
  const { mode } = services.settings
  return page(
    c,
    <ConsentPage
      clientName={nameOf(client)}
      clientId={String(clientId)}
      redirectUri={String(redirectUri)}
      person={principal.account.displayName}
      accountId={principal.account.id}
      scopes={askedScopes(interaction)}
      isSandbox={mode === 'sandbox'}
    />,
  )
}

/** What the client asked for; everything where it asked for nothing in particular. */
function askedScopes({ params }: Interaction): readonly Scope[] {
  const named = String(params.scope ?? '')
    .split(' ')
    .filter(isScope)
  return named.length > 0 ? named : grantMembers.scopes.in.element.options
}

async function decide(c: HttpContext, parts: Parts, interaction: Interaction | null): Promise<Response> {
  const principal = callerOf(c)
  const { services, provider } = parts
  const context = { principal, settings: services.settings, now: c.get('now') }
  const { account } = personOf(context)
  if (interaction === null)
    throw new Failure('not_found', 'This authorization has ended. Start again from the application.')
  const decided = decision.safeParse(bodyOf(c))
  if (!decided.success) throw badRequest(decided.error)
  if ((decided.data.accountId ?? account.id) !== account.id)
    throw new Failure('conflict', 'Somebody else has signed in since this page was opened.', {
      hint: 'Reload the page, and look at whose account it is.',
    })
  const asked = askedScopes(interaction)
  const scopes =
    decided.data.decision === 'approve' ? decided.data.scopes.filter((scope) => asked.includes(scope)) : []
  if (decided.data.decision === 'approve') {
    if (scopes.length === 0) throw nothingAllowed()
    requireStepUp(context)
  }
  const id = await keyOfDecision(services, interaction, {
    accountId: account.id,
    fingerprint: fingerprintOf('oauth.consent', decided.data),
    now: context.now,
  })
  const { incoming, outgoing } = nodePairOf(c)
  if (decided.data.decision === 'deny') {
    const result = { error: 'access_denied', error_description: 'The owner said no.' }
    return c.json({ redirectTo: await provider.interactionResult(incoming, outgoing, result) })
  }
  const clientId = String(interaction.params.client_id)
  const client = await provider.Client.find(clientId)
  const policy = decided.data.policy ?? null
  const key = {
    id,
    kind: 'grant',
    name: (nameOf(client) || clientId).slice(0, 80),
    thumbprint: null,
    publicKey: null,
    secretHash: null,
    scopes,
    status: 'active',
    policy,
    policyVersion: 1,
    policyHash: policyHashOf(policy),
    createdAt: context.now,
    expiresAt: null,
  } as const
  await services.database.transaction(async (transaction) => {
    if (!(await insertKey(transaction, account.id, key))) return
    await services.journal(transaction, {
      accountId: account.id,
      actor: { kind: 'person', id: account.id },
      action: 'key.created',
      object: { kind: 'key', id },
      after: keyState(key),
      at: context.now,
    })
    // A client's own document may have been waited for since the session was read.
    await requireStanding(transaction, principal)
  })
  // The id of the grant is that of the key: whoever has the one has the other.
  const grant = new provider.Grant({ accountId: account.id, clientId })
  grant.jti = id
  const resource = resourceOf(services.settings.origin)
  const refused = asked.filter((scope) => !scopes.includes(scope))
  grant.addResourceScope(resource, scopes.join(' '))
  // Said, so that it is not asked again.
  grant.rejectResourceScope(resource, refused.join(' '))
  // The library also takes them for scopes of its own, which give nothing here.
  grant.rejectOIDCScope(['openid', ...asked].join(' '))
  grant.addOIDCScope('offline_access')
  await grant.save()
  await extendRecord(services, { model: CLIENT_MODEL, id: clientId, seconds: CLIENT_SECONDS })
  if (decided.data.keepEarlier !== true)
    await endEarlier(services, { accountId: account.id, clientId, id, at: context.now })
  const result = {
    login: { accountId: account.id, remember: false },
    consent: { grantId: id },
  }
  return c.json({ redirectTo: await provider.interactionResult(incoming, outgoing, result) })
}

/** Ends what the client was granted before: an owner who allows less now means less. */
async function endEarlier(
  { database, journal }: Pick<Services, 'database' | 'journal'>,
  { accountId, clientId, id, at }: { accountId: string; clientId: string; id: string; at: Date },
): Promise<void> {
  for (const earlier of await grantsOf(database, { model: GRANT_MODEL, accountId, clientId })) {
    if (earlier === id) continue
    await database.transaction(async (transaction) => {
      if (!(await revokeKey(transaction, { accountId, kinds: agentKinds, id: earlier }))) return
      const actor = { kind: 'person', id: accountId } as const
      const object = { kind: 'key', id: earlier }
      await journal(transaction, { accountId, actor, action: 'key.revoked', object, at })
    })
  }
}

const first = z.object({ accountId: z.string(), fingerprint: z.string(), keyId: z.string() })

/**
 * The id of the key that a decision makes: a request is answered once, and the same answer again is that one.
 * @throws Failure `conflict` where another answer, or another person's, came first.
 */
async function keyOfDecision(
  { database, newId }: Services,
  { uid, exp }: Interaction,
  { now, ...answer }: { accountId: string; fingerprint: string; now: Date },
): Promise<string> {
  const record = {
    model: 'oauth decision',
    id: uid,
    payload: { ...answer, keyId: newId('key', now) },
    expiresAt: new Date(exp * 1000),
  }
  const { accountId, fingerprint, keyId } = first.parse(await insertIfAbsent(database, record))
  if (accountId === answer.accountId && fingerprint === answer.fingerprint) return keyId
  throw new Failure('conflict', 'This authorization was answered already.', {
    hint: 'Start again from the application. A key that it was given is among your agents’ keys.',
  })
}

function nothingAllowed(): Failure {
  const message = 'allow at least one of those that were asked for'
  return new Failure('invalid_request', `scopes: ${message}`, {
    issues: [{ path: 'scopes', message }],
    hint: 'Or deny.',
  })
}

/** The client's name as it can be shown: it says itself what it is called. */
function nameOf(client: { readonly clientName?: string | undefined } | undefined): string {
  return visibleText(client?.clientName ?? '')
}

function bodyOf(c: HttpContext): unknown {
  if (!/^application\/json\b/i.test(c.req.header('content-type') ?? ''))
    throw new Failure('unsupported_media_type', 'The decision is JSON.')
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(c.get('body')))
  } catch {
    throw new Failure('invalid_request', 'The body is not valid JSON.')
  }
}

function badRequest({ issues }: z.ZodError): Failure {
  const told = issues.map(({ path, message }) => ({ path: path.join('.'), message }))
  const [first] = told
  return new Failure(
    'invalid_request',
    first ? `${first.path}: ${first.message}` : 'The decision is wrong.',
    {
      issues: told,
    },
  )
}

function page(c: HttpContext, content: { toString(): string }, status: 200 | 400 = 200): Response {
  return c.html(`<!doctype html>${content.toString()}`, status, pageHeaders)
}
