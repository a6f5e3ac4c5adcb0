/**
 * Asks hosts of the public internet alone: a client that names a document of its own must not make us ask our neighbours.
 * The address is judged where the connection is made, so that a name cannot change its mind in between.
 */
import { request } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { createResolver } from './resolve-client-host.ts'

const TIMEOUT_MS = 3_000
/** What a client's metadata may weigh. @see https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/ */
const LARGEST_BYTES = 64 * 1024

/** Addresses that are not of the public internet. @see https://www.iana.org/assignments/iana-ipv4-special-registry/ */
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

/** Whether an address is one of the public internet. Of IPv6, global unicast without its special parts. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  return family === 6 && globalUnicast.check(address, 'ipv6') && !specialUnicast.check(address, 'ipv6')
}

const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')
const specialUnicast = new BlockList()
// Tunnels that hold an IPv4 address, and documentation.
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
] as const)
  specialUnicast.addSubnet(network, bits, 'ipv6')

/** Fetches by GET over https; follows no redirect. @throws Error for anything else, and where it takes too long or too much. */
export async function fetchPublic(input: string | URL | Request): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input)
  if (url.protocol !== 'https:' || isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0)
    throw new Error('only https and a host name are asked')
  return new Promise((resolve, reject) => {
    const asking = request(
      url,
      {
        headers: { accept: 'application/json' },
        lookup: lookupPublic,
        // For the whole of it: whoever sends a byte now and then is not waited for either.
        signal: AbortSignal.timeout(TIMEOUT_MS),
        agent: false,
      },
      (answer) => {
        const chunks: Buffer[] = []
        let size = 0
        answer.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > LARGEST_BYTES) asking.destroy(new Error('the document is too large'))
          else chunks.push(chunk)
        })
        answer.on('end', () => {
          const headers = { 'content-type': answer.headers['content-type'] ?? '' }
          resolve(new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 502, headers }))
        })
        answer.on('error', reject)
      },
    )
    asking.on('error', reject).end()
  })
}

const resolveStranger = createResolver()

const lookupPublic: NonNullable<Parameters<typeof request>[1]['lookup']> = (host, options, done) => {
  resolveStranger(host).then(
    (addresses) => {
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPublicAddress(address)))
        return done(new Error(`${host} is not on the public internet`), '', 0)
      // Node asks for one address or for all, as it likes.
      if (options.all === true) done(null, addresses)
      else done(null, first.address, first.family)
    },
    (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), '', 0),
  )
}
