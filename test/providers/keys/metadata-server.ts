/**
 * Where clouds give credentials to their machines and containers, as strict as their documents.
 * @see https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
 * @see https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
 * @see https://cloud.google.com/compute/docs/metadata/querying-metadata
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ACCESS_KEY_ID, SECRET, SESSION_TOKEN } from './aws-kms-server.ts'

const ROLE = 'bursar-gateway'
export const CONTAINER_PATH = '/v1/credentials'
const ROLES = '/latest/meta-data/iam/security-credentials/'

export interface MetadataServer {
  readonly url: string
  /** Host and port. */
  readonly host: string
  /** What it answers from now on. */
  readonly given: {
    session: string
    accessToken: string
    /** Of credentials that are read now. */
    lifeMs: number
    hasRole: boolean
    /** Of containers, in the header `authorization`; null: none is wanted. */
    containerToken: string | null
    /** Answers 500. */
    isBroken: boolean
    hasFlavor: boolean
  }
  /** Credentials that were given so far. */
  count(): number
  close(): Promise<void>
}

export async function startMetadataServer(): Promise<MetadataServer> {
  const given: MetadataServer['given'] = {
    session: SESSION_TOKEN,
    accessToken: 'ya29.an-access-token',
    lifeMs: 3_600_000,
    hasRole: true,
    containerToken: null,
    isBroken: false,
    hasFlavor: true,
  }
  const tokens = new Set<string>()
  let count = 0
  const credentials = () => {
    count += 1
    return {
      ...{ AccessKeyId: ACCESS_KEY_ID, SecretAccessKey: SECRET, Token: given.session },
      Expiration: new Date(Date.now() + given.lifeMs).toISOString().replace(/\.\d{3}/, ''),
    }
  }
  const respond = ({ method, url = '', headers }: IncomingMessage, response: ServerResponse) => {
    const say = (status: number, body: string | object, more: Readonly<Record<string, string>> = {}) =>
      response.writeHead(status, more).end(typeof body === 'string' ? body : JSON.stringify(body))
    if (given.isBroken) return say(500, 'broken')
    if (headers['x-forwarded-for'] !== undefined) return say(403, 'forwarded')
    if (url === '/latest/api/token') {
      const ttl = Number(headers['x-aws-ec2-metadata-token-ttl-seconds'])
      if (method !== 'PUT') return say(405, 'PUT')
      if (!(ttl >= 1 && ttl <= 21_600)) return say(400, 'ttl')
      const token = randomUUID()
      tokens.add(token)
      return say(200, token)
    }
    if (method !== 'GET') return say(405, 'GET')
    if (url.startsWith(ROLES)) {
      if (!tokens.has(String(headers['x-aws-ec2-metadata-token']))) return say(401, 'token')
      if (!given.hasRole) return say(404, 'no role')
      if (url === ROLES) return say(200, `${ROLE}\n`)
      if (url !== `${ROLES}${ROLE}`) return say(404, 'another role')
      return say(200, { Code: 'Success', Type: 'AWS-HMAC', LastUpdated: new Date(), ...credentials() })
    }
    if (url === CONTAINER_PATH) {
      if (given.containerToken !== null && headers.authorization !== given.containerToken)
        return say(401, 'token')
      return say(200, { RoleArn: `arn:aws:iam::111122223333:role/${ROLE}`, ...credentials() })
    }
    if (url === '/computeMetadata/v1/instance/service-accounts/default/token') {
      if (headers['metadata-flavor'] !== 'Google') return say(403, 'flavor')
      if (!given.hasRole) return say(404, 'no account')
      count += 1
      const expires_in = Math.floor(given.lifeMs / 1_000)
      return say(
        200,
        { access_token: given.accessToken, expires_in, token_type: 'Bearer' },
        given.hasFlavor ? { 'metadata-flavor': 'Google' } : {},
      )
    }
    return say(404, 'nothing')
  }
  const server = createServer(respond)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    given,
    count: () => count,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
