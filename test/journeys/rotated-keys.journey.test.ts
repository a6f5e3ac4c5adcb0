/** Keys of access tokens, of requests to sellers and of push messages are replaced by restarts, and clients go on. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  discoverAuthorizationServerMetadata,
  exchangeAuthorization,
  refreshAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { calculateJwkThumbprint, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifierFromJWK } from 'web-bot-auth/crypto'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { postCall } from '../mcp/post-call.ts'
import { closedPort } from '../smtp.ts'
import { forManyTests, type Gateway, startGateway } from './gateway.ts'
import { newOAuthBrowser } from './oauth-browser.ts'
import { newGuest, type Person } from './people.ts'

const REDIRECT = 'http://127.0.0.1:39999/callback'
const names = ['ACCESS_TOKEN_KEY', 'WEB_BOT_AUTH_KEY', 'PUSH_KEY'] as const
const keySet = z.object({
  keys: z.array(z.looseObject({ kty: z.string(), crv: z.string(), x: z.string(), kid: z.string() })),
})
const report = z.object({ checks: z.array(z.object({ check: z.string(), detail: z.string() })) })

describe('a rotation of keys with one use', () => {
  const directory = mkdtempSync(join(tmpdir(), 'rotation-'))
  const next = {
    ACCESS_TOKEN_KEY: generateKeyPairSync('ed25519').privateKey,
    WEB_BOT_AUTH_KEY: generateKeyPairSync('ed25519').privateKey,
    PUSH_KEY: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  }
  const toPem = (name: (typeof names)[number]) =>
    next[name].export({ type: 'pkcs8', format: 'pem' }).toString()
  const kidOf = (name: (typeof names)[number]) =>
    calculateJwkThumbprint(createPublicKey(next[name]).export({ format: 'jwk' }))
  const setEach = (suffix: '' | '_PREVIOUS', value: (name: (typeof names)[number]) => string) =>
    Object.fromEntries(names.map((name) => [`${name}${suffix}`, value(name)]))
  let env: Record<string, string>
  let gateway: Gateway
  let owner: Person

  const restart = async (more: Record<string, string>) => {
    await gateway?.stop()
    gateway = await startGateway({ ...env, ...more })
  }
  const use = async (token: string) => (await postCall(gateway.origin, token, 'wallets_get', {})).status
  const readSet = async (path: string) => {
    const answer = await fetch(`${gateway.origin}${path}`)
    return { answer, keys: keySet.parse(await answer.json()).keys }
  }
  const pushKey = async () =>
    z
      .looseObject({ publicKey: z.string() })
      .parse((await owner.send('GET', '/api/notifications/subscriptions')).body).publicKey
  /** Every key of the directory has signed it. */
  const verifyDirectory = async () => {
    const { answer, keys } = await readSet('/.well-known/http-message-signatures-directory')
    const inputs = String(answer.headers.get('signature-input')).split(/, (?=sig\d=)/)
    const signatures = String(answer.headers.get('signature')).split(', ')
    expect(inputs).toHaveLength(keys.length)
    for (const [index, key] of keys.entries()) {
      const label = `sig${index + 1}=`
      const line = `"@authority";req: ${new URL(gateway.origin).host}\n"@signature-params": ${inputs[index]?.slice(label.length)}`
      const signature = Buffer.from(signatures[index]?.slice(label.length + 1, -1) ?? '', 'base64')
      const verifier = await verifierFromJWK(key)
      const at = { keyid: key.kid, created: new Date(), expires: new Date(), tag: 'web-bot-auth' } as const
      await verifier(line, signature, at)
    }
    return keys.map(({ kid }) => kid)
  }

  beforeAll(async () => {
    env = { ...forManyTests, DATA_DIR: directory, PORT: String(await closedPort()) }
    await restart({})
    owner = await newGuest(gateway.origin)
  }, 90_000)
  afterAll(async () => {
    await gateway?.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('publishes the next key, signs by it, and then forgets the one before: no client signs in again', async () => {
    const issuer = `${gateway.origin}/oauth`
    const metadata = await discoverAuthorizationServerMetadata(issuer)
    if (metadata === undefined) throw new Error('the authorization server has no metadata')
    const clientInformation = await registerClient(issuer, {
      metadata,
      clientMetadata: {
        client_name: 'Test agent',
        redirect_uris: [REDIRECT],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    })
    const resource = new URL(`${gateway.origin}/mcp`)
    const known = { metadata, clientInformation, resource }
    const { authorizationUrl, codeVerifier } = await startAuthorization(issuer, {
      ...known,
      ...{ redirectUrl: REDIRECT, scope: 'wallets:read', state: 'xyz' },
    })
    const page = gateway.origin.replace('127.0.0.1', 'localhost')
    const back = await newOAuthBrowser(page, owner.token).authorize(authorizationUrl, {
      decision: 'approve',
      scopes: ['wallets:read'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '20' },
        categories: { allow: ['transfer'] },
      },
    })
    const authorizationCode = back.searchParams.get('code') ?? ''
    let tokens = await exchangeAuthorization(issuer, {
      ...known,
      ...{ authorizationCode, codeVerifier, redirectUri: REDIRECT },
    })
    const refresh = async () => {
      const { refresh_token: refreshToken = '' } = tokens
      tokens = await refreshAuthorization(issuer, { ...known, refreshToken })
      return tokens.access_token
    }
    const first = tokens.access_token
    const before = {
      token: decodeProtectedHeader(first).kid,
      bot: await verifyDirectory(),
      push: await pushKey(),
    }
    expect(await use(first)).toBe(200)

    await restart(setEach('_PREVIOUS', toPem))
    expect(await use(first)).toBe(200)
    expect(decodeProtectedHeader(await refresh()).kid).toBe(before.token)
    const { keys } = await readSet('/oauth/jwks')
    expect(keys.map(({ kid }) => kid)).toEqual([before.token, await kidOf('ACCESS_TOKEN_KEY')])
    expect(await verifyDirectory()).toEqual([...before.bot, await kidOf('WEB_BOT_AUTH_KEY')])
    expect(await pushKey()).toBe(before.push)

    const rotated = { ...setEach('', toPem), ...setEach('_PREVIOUS', () => 'derived') }
    await restart(rotated)
    expect(await use(first)).toBe(200)
    const second = await refresh()
    expect(decodeProtectedHeader(second).kid).toBe(await kidOf('ACCESS_TOKEN_KEY'))
    expect(await use(second)).toBe(200)
    expect(await verifyDirectory()).toEqual([await kidOf('WEB_BOT_AUTH_KEY'), ...before.bot])
    expect(await pushKey()).not.toBe(before.push)

    await restart(setEach('', toPem))
    expect([await use(first), await use(second)]).toEqual([401, 200])
    expect(await verifyDirectory()).toEqual([await kidOf('WEB_BOT_AUTH_KEY')])

    const { out } = await bursar(['doctor', '--json'], { ...env, ...rotated })
    const details = new Map(report.parse(JSON.parse(out)).checks.map(({ check, detail }) => [check, detail]))
    for (const name of names)
      expect(details.get(`key ${name}`)).toMatch(
        new RegExp(`^(Ed25519|P-256), kid ${await kidOf(name)}, in the memory of the process, environment$`),
      )
    const follows = 'in the memory of the process, from the key of the database'
    for (const use of ['receipts', 'access tokens of OAuth clients', 'purses', 'payment channels'])
      expect(details.get(`key ${use}`), use).toContain(follows)
    expect(out).not.toContain('PRIVATE KEY')
  }, 240_000)
})
