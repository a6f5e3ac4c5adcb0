/**
 * Keeps errors of authorization requests on our own page. A client registers itself with any redirect URI, so that an error
 * that redirected would make a link to this gateway lead to any site.
 * @see https://www.rfc-editor.org/rfc/rfc9700#section-4.11.2
 */
import type { IncomingMessage } from 'node:http'
import type { errors as Errors, KoaContextWithOIDC, Provider } from 'oidc-provider'

/** Where an error belongs. @property isDenial the person chose to deny, on the consent page. */
export interface FailedAuthorization {
  readonly clientId: string
  readonly redirectUri: string
  readonly isDenial: boolean
}

/** Routes of the library whose errors redirect: an authorization, and its return from the consent page. */
const ROUTES: ReadonlySet<string> = new Set(['authorization', 'resume'])

/**
 * @param mayReturn decides whether the error is sent to the client, by the request that the provider got.
 */
export function keepErrors(
  provider: Provider,
  mayReturn: (request: IncomingMessage, failed: FailedAuthorization) => Promise<boolean>,
): void {
  const failures = new WeakMap<IncomingMessage, Error>()
  const note = (context: KoaContextWithOIDC, error: Error) => void failures.set(context.req, error)
  provider.on('authorization.error', note)
  provider.on('server_error', note)
  provider.use(async (context, next) => {
    await next()
    const error = failures.get(context.req)
    if (error === undefined) return
    const { client, params, route } = context.oidc
    if (client === undefined || !ROUTES.has(route)) return
    const failed = {
      clientId: client.clientId,
      redirectUri: String(params?.redirect_uri),
      isDenial: error.message === 'access_denied',
    }
    if (await mayReturn(context.req, failed)) return
    context.remove('Location')
    context.status = 400
    context.type = 'text'
    context.body = errorText(error)
  })
}

/** Text of an error page. */
export function errorText(
  error: Partial<Pick<Errors.OIDCProviderError, 'error_description'>> & { message?: string },
): string {
  return `This authorization failed: ${error.error_description ?? error.message}.\n`
}
