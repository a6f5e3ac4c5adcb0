/** OAuth consent: the owner chooses scopes and a spend policy for a client. Approval creates a key. */
import type { Provider } from 'oidc-provider'
import { z } from 'zod'
import { parseJson } from '../../../core/base/json.ts'
import { visibleName } from '../../../core/base/untrusted-text.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { requirePerson, type Services } from '../../../kernel/context.ts'
import { hashCall } from '../../../kernel/fingerprint.ts'
import { requireRole } from '../../../kernel/gates/scope.ts'
import { requireStepUp } from '../../../kernel/gates/step-up.ts'
import { requireValidCredential } from '../../../kernel/standing.ts'
import { hashPolicy } from '../../../people/identity/keys/agent-keys.ts'
import { isScope, type Scope } from '../../../people/identity/keys/grantable.ts'
import { grantMembers, refineGrant } from '../../../people/identity/keys/key-grant.ts'
import { keyState } from '../../../people/identity/keys/key-state.ts'
import { agentKinds, revokeKey } from '../../../people/identity/keys/owned-keys.ts'
import { buildResource } from '../../../people/identity/oauth/oauth-tokens.ts'
import { insertKey } from '../../../people/identity/store.ts'
import { requireCaller } from '../authenticate.ts'
import { requireNodePair } from '../oidc/handle-with-node-response.ts'
import { extendRecord, insertIfAbsent, listGrantIds } from '../oidc/storage.ts'
import { ConsentPage, ExpiredPage } from '../pages/consent.tsx'
import { pageHeaders } from '../pages/headers.ts'
import type { HttpContext } from '../request.ts'

const GRANT_MODEL = 'oauth Grant'

/** Approved clients are kept as long as a grant lasts. */
const CLIENT_MODEL = 'oauth Client'
const CLIENT_SECONDS = 365 * 24 * 60 * 60

/** Longest name of a client on the page and of its key. */
const MAX_NAME_CHARACTERS = 80

/** Account the page was rendered for; a different person may have signed in since. */
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

/** Renders the page on GET and processes the decision on POST. */
export async function answerConsent(c: HttpContext, parts: Parts): Promise<Response> {
  const interaction = await findInteraction(c, parts.provider)
  switch (c.req.method) {
    case 'GET':
    case 'HEAD':
      return show(c, parts, interaction)
    case 'POST':
      return decide(c, parts, interaction)
    default:
      c.set('allow', 'GET, POST')
      throw new Failure('method_not_allowed', `${c.req.method} is not allowed here; use GET or POST.`)
  }
}

/** Returns this browser's pending authorization; null if it has expired or belongs to another browser. */
async function findInteraction(c: HttpContext, provider: Provider): Promise<Interaction | null> {
  const { incoming, outgoing } = requireNodePair(c)
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
  if (interaction === null) return page(c, <ExpiredPage />, 400)
  const { principal } = c.get('caller')
  if (principal.kind !== 'session') return c.redirect(`/sign-in?next=${encodeURIComponent(c.req.path)}`, 302)
  const { client_id: clientId, redirect_uri: redirectUri } = interaction.params
  const client = await provider.Client.find(String(clientId))
  const { mode } = services.settings
  return page(
    c,
    <ConsentPage
      clientName={nameClient(client)}
      clientId={String(clientId)}
      redirectUri={String(redirectUri)}
      person={principal.account.displayName}
      accountId={principal.account.id}
      scopes={listRequestedScopes(interaction)}
      isSandbox={mode === 'sandbox'}
    />,
  )
}

/** The requested scopes; all scopes if the client requested none of ours. */
function listRequestedScopes({ params }: Interaction): readonly Scope[] {
  const named = String(params.scope ?? '')
    .split(' ')
    .filter(isScope)
  return named.length > 0 ? named : grantMembers.scopes.in.element.options
}

async function decide(c: HttpContext, parts: Parts, interaction: Interaction | null): Promise<Response> {
  const principal = requireCaller(c)
  const { services, provider } = parts
  const context = { principal, settings: services.settings, now: c.get('now') }
  const { account, person } = requirePerson(context)
  requireRole({ person }, 'owner')
  if (interaction === null)
    throw new Failure('not_found', 'This authorization has expired. Start again from the application.')
  const parsed = decision.safeParse(parseBody(c))
  if (!parsed.success) throw badRequest(parsed.error)
  if ((parsed.data.accountId ?? account.id) !== account.id)
    throw new Failure('conflict', 'A different account is now signed in than when this page was opened.', {
      hint: 'Reload the page and check the account.',
    })
  const requested = listRequestedScopes(interaction)
  const scopes =
    parsed.data.decision === 'approve' ? parsed.data.scopes.filter((scope) => requested.includes(scope)) : []
  if (parsed.data.decision === 'approve') {
    if (scopes.length === 0) throw noScopesSelected()
    requireStepUp(context)
  }
  const id = await claimDecisionKey(services, interaction, {
    accountId: account.id,
    fingerprint: hashCall('oauth.consent', parsed.data),
    now: context.now,
  })
  const { incoming, outgoing } = requireNodePair(c)
  if (parsed.data.decision === 'deny') {
    const result = { error: 'access_denied', error_description: 'The owner denied access.' }
    return c.json({ redirectTo: await provider.interactionResult(incoming, outgoing, result) })
  }
  const clientId = String(interaction.params.client_id)
  const client = await provider.Client.find(clientId)
  const policy = parsed.data.policy ?? null
  const key = {
    id,
    kind: 'grant',
    name: nameClient(client) || visibleName(clientId, MAX_NAME_CHARACTERS),
    thumbprint: null,
    publicKey: null,
    secretHash: null,
    scopes,
    status: 'active',
    policy,
    policyVersion: 1,
    policyHash: hashPolicy(policy),
    createdAt: context.now,
    expiresAt: null,
  } as const
  await services.database.transaction(async (transaction) => {
    if (!(await insertKey(transaction, account.id, key))) return
    await services.journal(transaction, {
      accountId: account.id,
      actor: { kind: 'person', id: person.id },
      action: 'key.created',
      object: { kind: 'key', id },
      after: keyState(key),
      at: context.now,
    })
    // Fetching the client's metadata may have taken time since the session was read.
    await requireValidCredential(transaction, principal)
  })
  // Grant and key share one id, so each can be found from the other.
  const grant = new provider.Grant({ accountId: account.id, clientId })
  grant.jti = id
  const resource = buildResource(services.settings.origin)
  const refused = requested.filter((scope) => !scopes.includes(scope))
  grant.addResourceScope(resource, scopes.join(' '))
  // Recorded as rejected, so that the library does not ask for them again.
  grant.rejectResourceScope(resource, refused.join(' '))
  // The library also treats them as OpenID scopes, which are not granted.
  grant.rejectOIDCScope(['openid', ...requested].join(' '))
  grant.addOIDCScope('offline_access')
  await grant.save()
  await extendRecord(services, { model: CLIENT_MODEL, id: clientId, seconds: CLIENT_SECONDS })
  if (parsed.data.keepEarlier !== true)
    await revokeEarlierGrants(services, {
      accountId: account.id,
      personId: person.id,
      clientId,
      id,
      at: context.now,
    })
  const result = {
    login: { accountId: account.id, remember: false },
    consent: { grantId: id },
  }
  return c.json({ redirectTo: await provider.interactionResult(incoming, outgoing, result) })
}

/** Revokes the client's earlier grants, so that a narrower grant replaces a wider one. */
async function revokeEarlierGrants(
  { database, journal }: Pick<Services, 'database' | 'journal'>,
  {
    accountId,
    personId,
    clientId,
    id,
    at,
  }: { accountId: string; personId: string; clientId: string; id: string; at: Date },
): Promise<void> {
  for (const earlier of await listGrantIds(database, { model: GRANT_MODEL, accountId, clientId })) {
    if (earlier === id) continue
    await database.transaction(async (transaction) => {
      if (!(await revokeKey(transaction, { accountId, kinds: agentKinds, id: earlier }))) return
      const actor = { kind: 'person', id: personId } as const
      const object = { kind: 'key', id: earlier }
      await journal(transaction, { accountId, actor, action: 'key.revoked', object, at })
    })
  }
}

const first = z.object({ accountId: z.string(), fingerprint: z.string(), keyId: z.string() })

/**
 * Returns the key id of a decision. Each authorization is decided once; repeating the same decision returns the same
 * key. @throws Failure `conflict` when a different decision, or another account's, came first.
 */
async function claimDecisionKey(
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
  throw new Failure('conflict', 'This authorization was already decided.', {
    hint: 'Start again from the application. If a key was created, it is listed among your agent keys.',
  })
}

function noScopesSelected(): Failure {
  const message = 'must contain at least one of the requested scopes'
  return new Failure('invalid_request', `scopes: ${message}`, {
    issues: [{ path: 'scopes', message }],
    hint: 'Select at least one scope, or deny the request.',
  })
}

/** The client's self-declared name, made safe for display. */
function nameClient(client: { readonly clientName?: string | undefined } | undefined): string {
  return visibleName(client?.clientName ?? '', MAX_NAME_CHARACTERS)
}

function parseBody(c: HttpContext): unknown {
  if (!/^application\/json\b/i.test(c.req.header('content-type') ?? ''))
    throw new Failure('unsupported_media_type', 'The decision must be sent as JSON.')
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(c.get('body')))
  } catch {
    throw new Failure('invalid_request', 'The body is not valid JSON.')
  }
}

function badRequest({ issues }: z.ZodError): Failure {
  const problems = issues.map(({ path, message }) => ({ path: path.join('.'), message }))
  const [first] = problems
  return new Failure(
    'invalid_request',
    first ? `${first.path}: ${first.message}` : 'The decision is not valid.',
    {
      issues: problems,
    },
  )
}

function page(c: HttpContext, content: { toString(): string }, status: 200 | 400 = 200): Response {
  return c.html(`<!doctype html>${content.toString()}`, status, pageHeaders)
}
