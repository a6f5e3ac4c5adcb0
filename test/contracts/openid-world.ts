/**
 * An OpenID provider on loopback for the client's contract: the real library, behind a server that can misbehave on
 * demand.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'
import { newBrowser } from '../journeys/browser.ts'

/** Callback URL of the client. */
export const redirectUri = 'http://localhost/sign-in/test'
export const clientSecret = 'a client secret of thirty-two letters'

/** Answers instead of the provider. @returns false to let the provider answer. */
type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => boolean

/** A provider with a settable misbehaviour. */
export interface OpenIdWorld {
  readonly issuer: string
  readonly requestedPaths: string[]
  /** Misbehaviour for every request until it is set again; null for none. */
  misbehave(how: Misbehaviour | null): void
  /** Signs in at an authorization URL by the provider's forms. @returns the callback parameters. */
  signIn(authorizationUrl: string, login: string): Promise<{ code: string; iss: string; state: string }>
  close(): Promise<void>
}

export async function startOpenIdProvider(): Promise<OpenIdWorld> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'bursar', client_secret: clientSecret, redirect_uris: [redirectUri] }],
    claims: { openid: ['sub'], profile: ['name'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    ttl: { Interaction: 60, Session: 60, Grant: 60, AccessToken: 60, IdToken: 60, AuthorizationCode: 60 },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, name: accountId === 'nameless' ? undefined : ` ${accountId}\u0000 ` }),
    }),
  })
  const listener = provider.callback()
  let misbehaviour: Misbehaviour | null = null
  const asked: string[] = []
  server.on('request', (request, response) => {
    asked.push(request.url ?? '')
    if (misbehaviour?.(request, response) !== true) void listener(request, response)
  })
  return {
    issuer,
    requestedPaths: asked,
    misbehave(how) {
      misbehaviour = how
    },
    async signIn(authorizationUrl, login) {
      const browser = newBrowser(({ hostname }) => hostname === 'localhost')
      let { url, response } = await browser.visit(authorizationUrl)
      for (const form of [{ prompt: 'login', login, password: 'x' }, { prompt: 'consent' }]) {
        const action = /action="([^"]+)"/.exec((await response?.text()) ?? '')?.[1] ?? ''
        ;({ url, response } = await browser.visit(new URL(action, url).href, form))
      }
      const { code = '', iss = '', state = '' } = Object.fromEntries(url.searchParams)
      return { code, iss, state }
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Answers these bytes. */
export function answerWith(
  path: RegExp,
  body: string,
  type = 'application/json',
  status = 200,
): Misbehaviour {
  return (request, response) => {
    if (!path.test(request.url ?? '')) return false
    response.writeHead(status, { 'content-type': type }).end(body)
    return true
  }
}

/** Never answers. */
export function neverAnswer(path: RegExp): Misbehaviour {
  return (request) => path.test(request.url ?? '')
}
