/** As much of a browser as signing in with forms needs: cookies by host, and redirects up to a page that is only looked at. */

/** Where a browser ended up. @property response null where it stopped before asking. */
export interface Visit {
  readonly url: URL
  readonly response: Response | null
}

/** A browser with a cookie jar of its own. */
export interface Browser {
  /** Opens a URL and follows redirects. @param form posted where it is given. */
  visit(url: string, form?: Readonly<Record<string, string>>): Promise<Visit>
}

/** Makes a browser. @param stopsAt says which URLs it does not open any more. */
export function newBrowser(stopsAt: (url: URL) => boolean): Browser {
  const jars = new Map<string, Map<string, string>>()
  const keep = (host: string, lines: readonly string[]) => {
    const jar = jars.get(host) ?? new Map<string, string>()
    for (const line of lines) {
      const [pair = ''] = line.split(';')
      const [name = '', ...value] = pair.split('=')
      if (value.join('=') === '' || /expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name)
      else jar.set(name, value.join('='))
    }
    jars.set(host, jar)
  }
  return {
    async visit(start, form) {
      let url = new URL(start)
      let body = form === undefined ? null : new URLSearchParams(form)
      for (let hop = 0; hop < 10; hop += 1) {
        if (stopsAt(url)) return { url, response: null }
        const cookie = [...(jars.get(url.hostname) ?? [])].map((pair) => pair.join('=')).join('; ')
        const method = body === null ? 'GET' : 'POST'
        const response = await fetch(url, { method, body, redirect: 'manual', headers: { cookie } })
        keep(url.hostname, response.headers.getSetCookie())
        const location = response.headers.get('location')
        if (location === null) return { url, response }
        url = new URL(location, url)
        body = null
      }
      throw new Error('too many redirects')
    },
  }
}
