/**
 * Splits `postgres://user@one:5432,two:5433/name` into a URL per host. One host gives one URL.
 * @throws TypeError if a part is not a URL.
 */
export function splitHosts(url: string): readonly string[] {
  const found = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^/?]+)(.*)$/.exec(url)
  if (found === null) return [new URL(url).href]
  const [, start = '', hosts = '', rest = ''] = found
  return hosts.split(',').map((host) => {
    if (host === '') throw new TypeError('a host is missing')
    return new URL(`${start}${host}${rest}`).href
  })
}
