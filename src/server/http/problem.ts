/** Converts failures to RFC 9457 problem responses. @see https://www.rfc-editor.org/rfc/rfc9457 */
import { HTTPException } from 'hono/http-exception'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { stepUpMaxAge } from '../../kernel/gates/step-up.ts'
import { withoutCredentials } from './query-credentials.ts'

/** Headers of a 401 response. @see https://www.rfc-editor.org/rfc/rfc9421#name-the-accept-signature-field */
const challenges = {
  'WWW-Authenticate': 'Bearer realm="bursar"',
  'Accept-Signature':
    'sig1=("@method" "@authority" "@path" "@query" "content-digest");created;expires;nonce;keyid;alg="ed25519";tag="bursar"',
}

/** Challenge of a 401 response for a missing second factor. @see https://www.rfc-editor.org/rfc/rfc9470#section-3 */
const stepUpChallenge = `Bearer realm="bursar", error="insufficient_user_authentication", error_description="A second factor of the last five minutes is needed", acr_values="mfa", max_age="${stepUpMaxAge}"`

/**
 * Lists the sufficient scopes; none when only a person may call the tool.
 * @see https://www.rfc-editor.org/rfc/rfc6750#section-3.1
 */
function scopeChallenge({ members: { scopes = [] } }: Failure): string {
  const scope = scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
  return `Bearer realm="bursar", error="insufficient_scope"${scope}`
}

/** Converts a thrown error to a response. Unexpected errors are logged here, once, and answered as `internal`. */
export function problemResponse(
  error: unknown,
  {
    requestId,
    instance,
    resourceMetadata,
    log,
  }: { requestId: string; instance: string; resourceMetadata?: string | undefined; log: Log },
): Response {
  const failure = asFailure(error)
  if (failure.code === 'internal') log.error({ err: error, requestId }, 'unexpected error')
  const problem = { ...failure.toProblem(), instance, requestId }
  const headers = new Headers({ 'Content-Type': 'application/problem+json' })
  if (failure.members.retryAfter !== undefined) headers.set('Retry-After', String(failure.members.retryAfter))
  if (failure.members.location !== undefined) headers.set('Location', failure.members.location)
  if (failure.members.isReplayed === true) headers.set('Idempotency-Replayed', 'true')
  if (failure.status === 401) for (const [name, value] of Object.entries(challenges)) headers.set(name, value)
  if (failure.code === 'insufficient_scope') headers.set('WWW-Authenticate', scopeChallenge(failure))
  if (failure.code === 'step_up_required') headers.set('WWW-Authenticate', stepUpChallenge)
  const challenge = headers.get('WWW-Authenticate')
  // Points clients to the authorization server. @see https://www.rfc-editor.org/rfc/rfc9728#section-5.1
  if (challenge !== null && resourceMetadata !== undefined)
    headers.set('WWW-Authenticate', `${challenge}, resource_metadata="${resourceMetadata}"`)
  // Redacts credentials that a client misplaced, because responses may be logged by proxies.
  return new Response(withoutCredentials(JSON.stringify(problem)), { status: failure.status, headers })
}

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof HTTPException && error.status === 413) return bodyTooLarge()
  if (error instanceof HTTPException && error.status < 500)
    return new Failure('invalid_request', 'The request could not be parsed.')
  return new Failure(
    'internal',
    'An unexpected error occurred. The server log has the details under the request id.',
    {
      hint: 'Repeat the request with the same Idempotency-Key; if it fails again, report the request id.',
    },
    { cause: error },
  )
}

/** Size limit of request bodies, in bytes. */
export const MAX_BODY_BYTES = 64 * 1024

export function bodyTooLarge(maxBytes = MAX_BODY_BYTES): Failure {
  return new Failure('body_too_large', `The body is over ${maxBytes} bytes.`)
}
