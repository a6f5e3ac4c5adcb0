/** A push service, and the browser that reads its messages: RFC 8291 and RFC 8292, with node:crypto and jose alone. */
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { importJWK, jwtVerify } from 'jose'

export interface ReceivedPush {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** @property answer status of the next answers. @property key VAPID key of its subscriptions; null accepts each. */
export async function startPushService() {
  const received: ReceivedPush[] = []
  const service: { answer: number; key: string | null } = { answer: 201, key: null }
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(parts) })
      const isOther =
        service.key !== null && !String(request.headers.authorization).endsWith(`k=${service.key}`)
      response.writeHead(isOther ? 403 : service.answer).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  return { origin, received, service, close: () => new Promise((resolve) => server.close(resolve)) }
}

/** A browser with a subscription at the service. */
export function newBrowser(endpoint: string) {
  const curve = createECDH('prime256v1')
  const publicKey = curve.generateKeys()
  const auth = randomBytes(16)
  const keys = { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') }
  /** Decrypts a message in `aes128gcm`. @see https://www.rfc-editor.org/rfc/rfc8188 */
  const read = ({ body }: ReceivedPush): unknown => {
    const salt = body.subarray(0, 16)
    const keyLength = body.readUInt8(20)
    const senderKey = body.subarray(21, 21 + keyLength)
    const sealed = body.subarray(21 + keyLength)
    const shared = curve.computeSecret(senderKey)
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), publicKey, senderKey])
    const secret = Buffer.from(hkdfSync('sha256', shared, auth, info, 32))
    const derive = (label: string, length: number) =>
      Buffer.from(hkdfSync('sha256', secret, salt, Buffer.from(`Content-Encoding: ${label}\0`), length))
    const decipher = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12))
    decipher.setAuthTag(sealed.subarray(-16))
    const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
    return JSON.parse(padded.subarray(0, padded.lastIndexOf(2)).toString())
  }
  return { subscription: { endpoint, keys }, read }
}

/** Verifies the VAPID header. @returns the claims. */
export async function verifyVapid({ headers }: ReceivedPush, publicKey: string, audience: string) {
  const [, token = '', key] = /^vapid t=([^,]+), k=(.+)$/.exec(String(headers.authorization)) ?? []
  if (key !== publicKey) throw new Error('the key is another')
  const point = Buffer.from(publicKey, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
  const jwk = await importJWK({ kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }, 'ES256')
  return (await jwtVerify(token, jwk, { audience, algorithms: ['ES256'] })).payload
}
