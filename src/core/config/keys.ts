/** Configuration of the keys of this deployment: each is the value of its variable, or the value names its place. */
import { z } from 'zod'
import { DERIVED, isPrivateKeyOn, type KeyCurve, type RotatingKeyName } from '../base/rotating-key.ts'
import { isKeyReference, parseKeyReference, REFERENCE_FORMS } from './key-reference.ts'

/** @returns what is wrong with a reference, or undefined. */
function referenceFault(text: string): string | undefined {
  try {
    parseKeyReference(text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Values that are the key itself, or name its place. @param fault says what is wrong with the key itself. */
function keyOrReference(fault: (text: string) => string | undefined) {
  return z.string().superRefine((text, context) => {
    const message = isKeyReference(text) ? referenceFault(text) : fault(text)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
}

export const privateKey = keyOrReference((text) =>
  /^0x[0-9a-fA-F]{64}$/.test(text)
    ? undefined
    : `must be 0x and 64 hex digits, or a reference to a key (${REFERENCE_FORMS})`,
)

const secret = keyOrReference((text) => (text.length < 32 ? 'must have 32 characters or more' : undefined))

function pemOrReference(curve: KeyCurve) {
  return (
    z
      .string()
      // Most environments hold one line, with `\n` in place of line breaks.
      .transform((text) => text.replaceAll('\\n', '\n'))
      .pipe(
        keyOrReference((text) =>
          isPrivateKeyOn(curve, text)
            ? undefined
            : `must be ${curve === 'Ed25519' ? 'an' : 'a'} ${curve} private key in PEM, or a reference to a key (${REFERENCE_FORMS})`,
        ),
      )
  )
}

/** A key of a rotation, or the one that was used before the first. */
function previousKey(curve: KeyCurve) {
  const key = pemOrReference(curve)
  return z.string().transform((text, context) => {
    if (text === DERIVED) return text
    const { data, error } = key.safeParse(text)
    if (data !== undefined) return data
    context.addIssue({ code: 'custom', message: `${error?.issues[0]?.message ?? ''}, or: ${DERIVED}` })
    return z.NEVER
  })
}

/** An origin. Plain HTTP would show what a key opens: it is for this machine only. */
const endpoint = z.string().superRefine((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : null
  const isOrigin = url !== null && text === url.origin && /^https?:$/.test(url.protocol)
  const message = !isOrigin
    ? 'must be an origin, such as https://kms.example'
    : url.protocol === 'http:' && !isLoopback(url.hostname)
      ? 'must be https, except on this machine'
      : undefined
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})

/** Where a cloud gives credentials to its machines: plain HTTP only within the machine. */
function metadataUrl(isOrigin: boolean) {
  return z.string().superRefine((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : null
    const isWithin =
      url !== null &&
      (isLoopback(url.hostname) || /^(169\.254\.\d+\.\d+|\[fd00:ec2::[0-9a-f]+\])$/.test(url.hostname))
    if (url === null || (url.protocol !== 'https:' && !(url.protocol === 'http:' && isWithin)))
      context.addIssue({ code: 'custom', message: 'must be https, or an address of the machine itself' })
    else if (isOrigin && text.replace(/\/$/, '') !== url.origin)
      context.addIssue({ code: 'custom', message: 'must be an origin, such as http://169.254.169.254' })
  })
}

/** The key file of a Google service account. */
const accountFile = z.object({
  type: z.literal('service_account'),
  client_email: z.email(),
  private_key_id: z.string().min(1),
  private_key: z.string().startsWith('-----BEGIN PRIVATE KEY-----'),
})

const serviceAccount = z.string().transform((text, context) => {
  const { success, data } = accountFile.safeParse(parseJson(text))
  if (success) return { email: data.client_email, keyId: data.private_key_id, privateKey: data.private_key }
  context.addIssue({ code: 'custom', message: 'must be the JSON key of a service account' })
  return z.NEVER
})

export const keyVariables = {
  SESSION_SECRET: secret.optional(),
  SESSION_SECRET_PREVIOUS: secret.optional(),
  DATA_KEY: secret.optional(),
  DATA_KEY_PREVIOUS: secret.optional(),
  RECEIPT_KEY: pemOrReference('Ed25519').optional(),
  ACCESS_TOKEN_KEY: pemOrReference('Ed25519').optional(),
  ACCESS_TOKEN_KEY_PREVIOUS: previousKey('Ed25519').optional(),
  WEB_BOT_AUTH_KEY: pemOrReference('Ed25519').optional(),
  WEB_BOT_AUTH_KEY_PREVIOUS: previousKey('Ed25519').optional(),
  PUSH_KEY: pemOrReference('P-256').optional(),
  PUSH_KEY_PREVIOUS: previousKey('P-256').optional(),
  PKCS11_MODULE: z.string().startsWith('/', 'must be the absolute path of a library').optional(),
  PKCS11_PIN: z.string().min(1).optional(),
  AWS_KMS_ACCESS_KEY_ID: z
    .string()
    .regex(/^\w{16,128}$/, 'must be the id of an access key')
    .optional(),
  AWS_KMS_SECRET_ACCESS_KEY: z.string().min(1).optional(),
  AWS_KMS_SESSION_TOKEN: z.string().min(1).optional(),
  AWS_KMS_ENDPOINT: endpoint.optional(),
  AWS_KMS_CREDENTIALS_FROM: z.enum(['instance', 'container']).optional(),
  AWS_EC2_METADATA_SERVICE_ENDPOINT: metadataUrl(true).optional(),
  AWS_CONTAINER_CREDENTIALS_FULL_URI: metadataUrl(false).optional(),
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: z.string().startsWith('/', 'must be a path').optional(),
  AWS_CONTAINER_AUTHORIZATION_TOKEN: z.string().min(1).optional(),
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: z
    .string()
    .startsWith('/', 'must be the absolute path of a file')
    .optional(),
  GCP_KMS_CREDENTIALS: serviceAccount.optional(),
  GCP_KMS_ENDPOINT: endpoint.optional(),
  GCP_KMS_CREDENTIALS_FROM: z.enum(['instance']).optional(),
  GCE_METADATA_HOST: z
    .string()
    .regex(
      /^(metadata\.google\.internal|169\.254\.169\.254|127\.0\.0\.1|localhost)(:\d{1,5})?$/,
      'must be the host of the metadata service',
    )
    .optional(),
}

const variables = z.object(keyVariables)

export interface KeyConfig {
  readonly sessionSecret: string | null
  /** Verifies what it signed, during a rotation. */
  readonly sessionSecretPrevious: string | null
  /** Encrypts stored secrets and personal data. */
  readonly dataKey: string | null
  /** Opens what it sealed, during a rotation. */
  readonly dataKeyPrevious: string | null
  /** Signs receipts; null: a key that follows from the data key. */
  readonly receiptKey: string | null
  /** Keys with one use each; null: the one that follows from the data key. A previous one may be `derived`. */
  readonly rotatingKeys: Readonly<
    Record<RotatingKeyName, { readonly current: string | null; readonly previous: string | null }>
  >
  /** Where keys in tokens are reached. */
  readonly pkcs11: { readonly module: string | null; readonly pin: string | null }
  /** @property endpoint null: that of the key's region. @property credentialsFrom null: the three that follow. */
  readonly awsKms: {
    readonly endpoint: string | null
    readonly credentialsFrom: 'instance' | 'container' | null
    readonly accessKeyId: string | null
    readonly secretAccessKey: string | null
    readonly sessionToken: string | null
    /** Where instances and containers have the credentials of their roles. */
    readonly metadata: {
      readonly instance: string
      readonly container: string | null
      readonly containerToken: string | null
      readonly containerTokenFile: string | null
    }
  }
  /** @property credentials of a service account. @property credentialsFrom null: those. */
  readonly gcpKms: {
    readonly endpoint: string
    readonly credentialsFrom: 'instance' | null
    readonly metadataHost: string
    readonly credentials: z.output<typeof serviceAccount> | null
  }
}

/** Where keys outside of the process are reached. */
export type KeyPlaces = Pick<KeyConfig, 'pkcs11' | 'awsKms' | 'gcpKms'>

const GOOGLE_ENDPOINT = 'https://cloudkms.googleapis.com'
const GOOGLE_METADATA = 'metadata.google.internal'
const AWS_METADATA = 'http://169.254.169.254'
/** Of the agent beside a container in ECS. */
const AWS_CONTAINERS = 'http://169.254.170.2'

export function readKeys(settings: z.output<typeof variables>): KeyConfig {
  return {
    sessionSecret: settings.SESSION_SECRET ?? null,
    sessionSecretPrevious: settings.SESSION_SECRET_PREVIOUS ?? null,
    dataKey: settings.DATA_KEY ?? null,
    dataKeyPrevious: settings.DATA_KEY_PREVIOUS ?? null,
    receiptKey: settings.RECEIPT_KEY ?? null,
    rotatingKeys: {
      ACCESS_TOKEN_KEY: {
        current: settings.ACCESS_TOKEN_KEY ?? null,
        previous: settings.ACCESS_TOKEN_KEY_PREVIOUS ?? null,
      },
      WEB_BOT_AUTH_KEY: {
        current: settings.WEB_BOT_AUTH_KEY ?? null,
        previous: settings.WEB_BOT_AUTH_KEY_PREVIOUS ?? null,
      },
      PUSH_KEY: { current: settings.PUSH_KEY ?? null, previous: settings.PUSH_KEY_PREVIOUS ?? null },
    },
    pkcs11: { module: settings.PKCS11_MODULE ?? null, pin: settings.PKCS11_PIN ?? null },
    awsKms: {
      endpoint: settings.AWS_KMS_ENDPOINT ?? null,
      credentialsFrom: settings.AWS_KMS_CREDENTIALS_FROM ?? null,
      accessKeyId: settings.AWS_KMS_ACCESS_KEY_ID ?? null,
      secretAccessKey: settings.AWS_KMS_SECRET_ACCESS_KEY ?? null,
      sessionToken: settings.AWS_KMS_SESSION_TOKEN ?? null,
      metadata: {
        instance: (settings.AWS_EC2_METADATA_SERVICE_ENDPOINT ?? AWS_METADATA).replace(/\/$/, ''),
        container: locateContainer(settings),
        containerToken: settings.AWS_CONTAINER_AUTHORIZATION_TOKEN ?? null,
        containerTokenFile: settings.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE ?? null,
      },
    },
    gcpKms: {
      endpoint: settings.GCP_KMS_ENDPOINT ?? GOOGLE_ENDPOINT,
      credentialsFrom: settings.GCP_KMS_CREDENTIALS_FROM ?? null,
      metadataHost: settings.GCE_METADATA_HOST ?? GOOGLE_METADATA,
      credentials: settings.GCP_KMS_CREDENTIALS ?? null,
    },
  }
}

/** The relative one comes first, as in the vendor's own clients. */
function locateContainer({
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative,
  AWS_CONTAINER_CREDENTIALS_FULL_URI: full,
}: z.output<typeof variables>): string | null {
  return relative === undefined ? (full ?? null) : `${AWS_CONTAINERS}${relative}`
}

function isLoopback(hostname: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
}

/** @returns null for text that is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
