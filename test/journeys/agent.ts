/**
 * Agent with its own Ed25519 key, signing with a third-party library so that our own signing code is not tested against
 * itself.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign as signBytes } from 'node:crypto'
import { createSigner, httpbis } from 'http-message-signatures'
import { calculateJwkThumbprint } from 'jose'

export interface AgentRequest {
  readonly method: string
  readonly url: string
  readonly body?: string
  readonly idempotencyKey?: string
  /** Other fields to send, in lower case. They are covered too. */
  readonly fields?: Readonly<Record<string, string>>
  /** Components to leave out of the signature. */
  readonly uncovered?: readonly string[]
  /** Signature parameters that override the correct ones. */
  readonly parameters?: Readonly<Record<string, Date | string>>
}

export interface Agent {
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  readonly keyId: string
  readonly privateKey: KeyObject
  sign(request: AgentRequest): Promise<Record<string, string>>
  /** Signs bytes with Ed25519. @param hash 0x hex. @returns base64url. */
  signHash(hash: string): string
  fetch(request: AgentRequest): Promise<Response>
  /** The signed fetch with the standard `fetch` signature. */
  readonly fetchLike: (url: string | URL, init?: RequestInit) => Promise<Response>
}

export async function newAgent(): Promise<Agent> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: privateKey.export({ format: 'jwk' }).x ?? '' } as const
  const keyId = await calculateJwkThumbprint(jwk)
  const sign = (request: AgentRequest) => signRequest(privateKey, keyId, request)
  const send = async (request: AgentRequest, extra: Record<string, string> = {}) =>
    fetch(request.url, {
      method: request.method,
      headers: { ...extra, ...(await sign(request)) },
      ...(request.body === undefined ? {} : { body: request.body }),
    })
  return {
    jwk,
    keyId,
    privateKey,
    sign,
    signHash: (hash) => signBytes(null, Buffer.from(hash.slice(2), 'hex'), privateKey).toString('base64url'),
    fetch: send,
    fetchLike: (url, init) => {
      const headers = Object.fromEntries(new Headers(init?.headers))
      const body = init?.body
      if (body !== undefined && body !== null && typeof body !== 'string')
        throw new Error('only text bodies are signed here')
      return send(
        { method: init?.method ?? 'GET', url: String(url), ...(typeof body === 'string' ? { body } : {}) },
        headers,
      )
    },
  }
}

async function signRequest(
  privateKey: KeyObject,
  keyId: string,
  { method, url, body, idempotencyKey, fields = {}, uncovered = [], parameters = {} }: AgentRequest,
) {
  const digest =
    body === undefined ? undefined : `sha-256=:${createHash('sha256').update(body).digest('base64')}:`
  const headers: Record<string, string> = {
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-digest': digest ?? '' }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...fields,
  }
  const message = await httpbis.signMessage(
    {
      key: createSigner(privateKey, 'ed25519', keyId),
      fields: [
        '@method',
        '@authority',
        '@path',
        '@query',
        ...(body === undefined ? [] : ['content-digest']),
        ...(idempotencyKey === undefined ? [] : ['idempotency-key']),
        ...Object.keys(fields),
      ].filter((name) => !uncovered.includes(name)),
      params: ['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'],
      paramValues: {
        created: new Date(),
        expires: new Date(Date.now() + 60_000),
        nonce: randomBytes(16).toString('base64'),
        tag: 'bursar',
        ...parameters,
      },
    },
    { method, url, headers },
  )
  return Object.fromEntries(
    Object.entries(message.headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
}
