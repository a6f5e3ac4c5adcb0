/** Headless browser: follows redirects on our own host, keeps cookies, and submits the consent page. */
import { z } from 'zod'

export interface ConsentDecision {
  readonly decision: 'approve' | 'deny'
  readonly scopes?: readonly string[]
  readonly policy?: object
  readonly keepEarlier?: boolean
}

/** Browser of a signed-in person. */
export interface OAuthBrowser {
  /** Opens an authorization URL and decides. @returns the redirect to the client. */
  authorize(url: URL, decision: ConsentDecision): Promise<URL>
  /** Opens an authorization URL. @returns the consent page. */
  begin(url: URL): Promise<{ url: URL; page: string }>
  /** Posts a decision to a consent page. @param token session of another person, if not the browser's own. */
  decide(
    url: URL,
    decision: object,
    token?: string,
  ): Promise<{ status: number; body: Record<string, unknown> }>
  open(url: string): Promise<Response>
}

/** Creates a browser with a session cookie. @param origin of the gateway's pages. */
export function newOAuthBrowser(origin: string, sessionToken: string): OAuthBrowser {
  const jar = new Map([['bursar_session', sessionToken]])
  const send = async (url: string, init: RequestInit = {}): Promise<Response> => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: {
        ...(new URL(url).origin === origin ? { cookie } : {}),
        ...(init.method === 'POST' ? { origin } : {}),
        ...init.headers,
      },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }
  /** Follows redirects on our own host. @returns the last URL requested, or the first one on another host. */
  const follow = async (start: string): Promise<{ url: URL; response: Response | null }> => {
    let url = new URL(start)
    for (let hop = 0; hop < 10; hop += 1) {
      if (url.port !== new URL(origin).port) return { url, response: null }
      const response = await send(url.href)
      const location = response.headers.get('location')
      if (location === null) return { url, response }
      url = new URL(location, url)
    }
    throw new Error(`too many redirects from ${start}`)
  }
  const begin: OAuthBrowser['begin'] = async (start) => {
    const { url, response } = await follow(start.href)
    const page = (await response?.text()) ?? ''
    if (response === null || !url.pathname.startsWith('/oauth/consent/'))
      throw new Error(`no consent page at ${url.href}: ${page}`)
    return { url, page }
  }
  const decide: OAuthBrowser['decide'] = async (url, decision, token) => {
    if (token !== undefined) {
      for (const name of jar.keys()) if (name.startsWith('bursar_session')) jar.delete(name)
      jar.set('bursar_session', token)
    }
    const response = await send(url.href, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(decision),
    })
    return { status: response.status, body: z.record(z.string(), z.unknown()).parse(await response.json()) }
  }
  return {
    open: (url) => send(url),
    begin,
    decide,
    async authorize(start, decision) {
      const { url } = await begin(start)
      const { redirectTo } = z.object({ redirectTo: z.string() }).parse((await decide(url, decision)).body)
      return (await follow(redirectTo)).url
    },
  }
}
