/** Sentinels of `REDIS_URL`, which name the Redis that is primary at the moment. */

export interface RedisSentinels {
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  /** Name of the primary at the Sentinels. */
  readonly name: string
  /** Of Redis; empty if it asks for none. */
  readonly username: string
  readonly password: string
  readonly database: number
  readonly isEncrypted: boolean
}

const SENTINELS =
  /^(rediss?)\+sentinel:\/\/(?:([^@/:]*)(?::([^@/]*))?@)?([^/?#@]+)\/([\w.-]+)(?:\/(\d{1,3}))?$/
const SENTINEL_PORT = 26379

/**
 * Parses `redis+sentinel://user:password@one:26379,two:26379/name/0`. `rediss+sentinel` reaches both Redis and Sentinels over TLS.
 * @throws TypeError if it is not one.
 */
export function parseSentinels(url: string): RedisSentinels {
  const found = SENTINELS.exec(url)
  if (found === null) throw new TypeError('not a redis+sentinel:// URL')
  const [, scheme = '', username = '', password = '', hosts = '', name = '', database = '0'] = found
  return {
    sentinels: hosts.split(',').map((host) => {
      const { hostname, port } = new URL(`${scheme}://${host}`)
      if (hostname === '') throw new TypeError('a host is missing')
      return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? SENTINEL_PORT : Number(port) }
    }),
    name,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: Number(database),
    isEncrypted: scheme === 'rediss',
  }
}

/** True if a URL names Sentinels, not a Redis. */
export function namesSentinels(url: string): boolean {
  return /^rediss?\+sentinel:/.test(url)
}

/** Hosts of a Redis URL, for messages; the rest of the URL may be secret. */
export function listRedisHosts(url: string): string {
  if (!namesSentinels(url)) return new URL(url).host
  return parseSentinels(url)
    .sentinels.map(({ host, port }) => `${host}:${port}`)
    .join(', ')
}
