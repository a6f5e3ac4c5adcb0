/** The frame of local key management services, which are as strict as their vendors' documents, and can be disturbed. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { concatHex, hexToBytes, size, slice, toHex, trim } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

/**
 * `throttle` and `fail` answer errors that pass; `hang-up` and `silence` answer nothing; `other-key` signs with another key; `other-name`
 * answers for another key; `corrupt` changes a byte of what it answers; `wrong-sum` states another checksum.
 */
export type Disturbance =
  | 'throttle'
  | 'fail'
  | 'hang-up'
  | 'silence'
  | 'other-key'
  | 'other-name'
  | 'corrupt'
  | 'wrong-sum'

/** @property headers in lower case. */
export interface KmsRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface KmsAnswer {
  readonly status: number
  readonly body: object
}

export interface KmsServer {
  readonly url: string
  /** Number of requests so far. */
  count(): number
  /** @param times requests that it lasts for. */
  disturb(kind: Disturbance, times?: number): void
  close(): Promise<void>
}

/** @param answer of a request. @param isDisturbed tells whether a disturbance applies now. */
export async function startKmsServer(
  answer: (request: KmsRequest, disturbed: Disturbance | null) => Promise<KmsAnswer>,
): Promise<KmsServer> {
  let count = 0
  let disturbance: { readonly kind: Disturbance; left: number } | null = null
  const take = () => {
    if (disturbance === null || disturbance.left === 0) return null
    disturbance.left -= 1
    return disturbance.kind
  }
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    count += 1
    const disturbed = take()
    const body = await text(request)
    if (disturbed === 'silence') return
    if (disturbed === 'hang-up') return void response.destroy()
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
    const { method = '', url: path = '' } = request
    const { status, body: answered } = await answer({ method, path, headers, body }, disturbed)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answered))
  }
  const server = createServer((request, response) => {
    respond(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    count: () => count,
    disturb(kind, times = Number.POSITIVE_INFINITY) {
      disturbance = { kind, left: times }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** A key of a service on secp256k1. Every second signature has the higher s, as services do not care. */
export function newChainKey() {
  const account = privateKeyToAccount(generatePrivateKey())
  const point = hexToBytes(account.publicKey)
  let signed = 0
  return {
    address: account.address,
    jwk: {
      kty: 'EC',
      crv: 'secp256k1',
      x: Buffer.from(point.subarray(1, 33)).toString('base64url'),
      y: Buffer.from(point.subarray(33)).toString('base64url'),
    },
    /** @returns DER. */
    async sign(digest: Uint8Array): Promise<Buffer> {
      signed += 1
      const signature = await account.sign({ hash: toHex(digest) })
      const low = BigInt(slice(signature, 32, 64))
      return encodeDer(BigInt(slice(signature, 0, 32)), signed % 2 === 0 ? low : ORDER - low)
    },
  }
}

/** @see https://www.rfc-editor.org/rfc/rfc3279#section-2.2.3 */
export function encodeDer(r: bigint, s: bigint): Buffer {
  const integer = (value: bigint) => {
    const short = trim(toHex(value, { size: 32 }))
    const digits = BigInt(slice(short, 0, 1)) >= 0x80n ? concatHex(['0x00', short]) : short
    return concatHex(['0x02', toHex(size(digits), { size: 1 }), digits])
  }
  const both = concatHex([integer(r), integer(s)])
  return Buffer.from(hexToBytes(concatHex(['0x30', toHex(size(both), { size: 1 }), both])))
}

/** Changes one byte. */
export function corrupt(data: Buffer): Buffer {
  const changed = Buffer.from(data)
  const at = changed.length - 3
  changed[at] = (changed[at] ?? 0) ^ 1
  return changed
}
