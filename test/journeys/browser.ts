/** Minimal browser for form sign-ins: cookies by host, and redirects up to a page that is only read. */

/** Last page of a visit. @property response null if the browser stopped before requesting it. */
export interface Visit {
  readonly url: URL
  readonly response: Response | null
}

/** Browser with its own cookie jar. */
export interface Browser {
  /** Opens a URL and follows redirects. @param form posted when present. */
  visit(url: string, form?: Readonly<Record<string, string>>): Promise<Visit>
}

/** Creates a browser. @param stopsAt matches URLs that the browser does not open. */
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
