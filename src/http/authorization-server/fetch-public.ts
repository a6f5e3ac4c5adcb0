/**
 * Fetches client metadata documents from public internet hosts only, so that a client cannot make the gateway request
 * internal services (SSRF). The address is checked at connection time, which defeats DNS rebinding.
 */
import { request } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { createHostResolver } from './resolve-client-host.ts'

const TIMEOUT_MS = 3_000
/**
 * Size limit of a client metadata document.
 * @see https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/
 */
const MAX_DOCUMENT_BYTES = 64 * 1024

/** Address ranges outside the public internet. @see https://www.iana.org/assignments/iana-ipv4-special-registry/ */
const notPublic = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  notPublic.addSubnet(network, bits, 'ipv4')

/** True for public internet addresses. IPv6: global unicast without its special-purpose ranges. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  return family === 6 && globalUnicast.check(address, 'ipv6') && !specialUnicast.check(address, 'ipv6')
}

const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')
const specialUnicast = new BlockList()
// Tunnels that embed an IPv4 address, and documentation ranges.
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
] as const)
  specialUnicast.addSubnet(network, bits, 'ipv6')

/**
 * Sends a GET over https without following redirects. @throws Error for other URLs, on a timeout, and when the
 * document is too large.
 */
export async function fetchPublic(input: string | URL | Request): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input)
  if (url.protocol !== 'https:' || isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0)
    throw new Error('only https URLs with a host name are fetched')
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        headers: { accept: 'application/json' },
        lookup: lookupPublic,
        // Limits the whole exchange, so a server that trickles bytes is cut off too.
        signal: AbortSignal.timeout(TIMEOUT_MS),
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > MAX_DOCUMENT_BYTES) outgoing.destroy(new Error('the document is too large'))
          else chunks.push(chunk)
        })
        response.on('end', () => {
          const headers = { 'content-type': response.headers['content-type'] ?? '' }
          resolve(new Response(Buffer.concat(chunks), { status: response.statusCode ?? 502, headers }))
        })
        response.on('error', reject)
      },
    )
    outgoing.on('error', reject).end()
  })
}

const resolveHost = createHostResolver()

const lookupPublic: NonNullable<Parameters<typeof request>[1]['lookup']> = (host, options, done) => {
  resolveHost(host).then(
    (addresses) => {
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPublicAddress(address)))
        return done(new Error(`${host} is not on the public internet`), '', 0)
      // Node requests one address or all of them.
      if (options.all === true) done(null, addresses)
      else done(null, first.address, first.family)
    },
    (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), '', 0),
  )
}
