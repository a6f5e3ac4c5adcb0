/**
 * Credentials that a cloud gives to its machines and containers. They last for hours, so they are read again before they end.
 * @see https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html (IMDSv2; version 1 is not used)
 * @see https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
 * @see https://cloud.google.com/compute/docs/access/authenticate-workloads
 */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { systemClock } from '../../core/base/clock.ts'
import type { KeyPlaces } from '../../core/config/keys.ts'
import type { ProviderAnswer, ProviderCall } from '../http-client.ts'
import { createKmsCaller, readJson } from './kms-call.ts'

/** Read again so long before their end; Google's metadata service has new ones five minutes before. */
const RENEW_MS = 4 * 60_000
/** Between readings that bring nothing that lasts longer. */
const PAUSE_MS = 15_000
const TOKEN_SECONDS = '300'
const ROLES = '/latest/meta-data/iam/security-credentials/'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
}

/** @property read the present value. @property forget it: the service says that it has ended. */
export interface Lasting<Value> {
  read(): Promise<Value>
  forget(): void
}

const answered = z.object({
  Code: z.literal('Success').optional(),
  AccessKeyId: z.string().min(1),
  SecretAccessKey: z.string().min(1),
  Token: z.string().min(1),
  Expiration: z.iso.datetime().transform((text) => Date.parse(text)),
})
const granted = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive(),
  token_type: z.literal('Bearer'),
})

/** Credentials of the role of an EC2 instance, or of a container in ECS or EKS. */
export function awsMachineCredentials({
  credentialsFrom,
  metadata,
}: Pick<KeyPlaces['awsKms'], 'credentialsFrom' | 'metadata'>): Lasting<AwsCredentials> {
  const ask = createAsker()
  const readAtInstance = async () => {
    const url = (path: string) => `${metadata.instance}${path}`
    const token = await ask({
      ...{ url: url('/latest/api/token'), method: 'PUT' },
      headers: { 'x-aws-ec2-metadata-token-ttl-seconds': TOKEN_SECONDS },
    })
    const headers = { 'x-aws-ec2-metadata-token': token.text }
    const [role = ''] = (await ask({ url: url(ROLES), headers }, 'this machine has no role')).text.split('\n')
    return ask({ url: `${url(ROLES)}${encodeURIComponent(role.trim())}`, headers })
  }
  const readAtContainer = async () => {
    if (metadata.container === null)
      throw new Error(
        'neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set: the container has no role',
      )
    const { containerToken, containerTokenFile } = metadata
    // Replaced by the platform while the container runs.
    const authorization =
      containerTokenFile === null ? containerToken : (await readFile(containerTokenFile, 'utf8')).trim()
    return ask({ url: metadata.container, headers: authorization === null ? {} : { authorization } })
  }
  return lasting(async () => {
    const answer = credentialsFrom === 'container' ? await readAtContainer() : await readAtInstance()
    const { data } = answered.safeParse(readJson(answer))
    if (data === undefined) throw new Error('their answer is not as documented')
    return {
      value: {
        accessKeyId: data.AccessKeyId,
        secretAccessKey: data.SecretAccessKey,
        sessionToken: data.Token,
      },
      endsAt: data.Expiration,
    }
  })
}

/** Access tokens of the service account of a machine, or of a workload in GKE. */
export function googleMachineToken(host: string): Lasting<string> {
  const ask = createAsker()
  return lasting(async () => {
    const answer = await ask(
      {
        url: `http://${host}/computeMetadata/v1/instance/service-accounts/default/token`,
        headers: { 'metadata-flavor': 'Google' },
      },
      'this machine has no service account',
    )
    if (answer.headers.get('metadata-flavor') !== 'Google') throw new Error('another service answers there')
    const { data } = granted.safeParse(readJson(answer))
    if (data === undefined) throw new Error('their answer is not as documented')
    return { value: data.access_token, endsAt: systemClock().getTime() + data.expires_in * 1_000 }
  })
}

function createAsker() {
  const call = createKmsCaller(({ status }) => status === 429 || status >= 500)
  return async (request: ProviderCall, absent = 'there are none'): Promise<ProviderAnswer> => {
    const answer = await call(async () => request)
    if (answer.status === 404) throw new Error(absent)
    if (!answer.ok) throw new Error(`they are refused (${answer.status})`)
    return answer
  }
}

/** Renews a value in use before it ends. Nobody waits for the next one while the present one lasts. */
function lasting<Value>(
  renew: () => Promise<{ readonly value: Value; readonly endsAt: number }>,
): Lasting<Value> {
  let held: { readonly value: Value; readonly endsAt: number } | undefined
  let renewAt = 0
  let renewing: Promise<Value> | undefined
  const start = () => {
    renewing ??= renew()
      .then((next) => {
        held = next
        renewAt = Math.max(next.endsAt - RENEW_MS, systemClock().getTime() + PAUSE_MS)
        return next.value
      })
      .catch((cause: unknown) => {
        renewAt = systemClock().getTime() + PAUSE_MS
        const why = cause instanceof Error ? cause.message : String(cause)
        throw new Error(`the credentials of this machine cannot be read: ${why}`, { cause })
      })
      .finally(() => {
        renewing = undefined
      })
    return renewing
  }
  return {
    async read() {
      const now = systemClock().getTime()
      if (held === undefined || now >= held.endsAt) return start()
      // Until they end, those that are held are good; the next reading may succeed.
      if (now >= renewAt) start().catch(() => undefined)
      return held.value
    },
    forget() {
      held = undefined
    },
  }
}
