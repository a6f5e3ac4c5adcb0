/** Configuration of the keys of this deployment: each is the value of its variable, or the value names its place. */
import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'
import { isKeyReference, parseKeyReference } from './key-reference.ts'

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
    : 'must be 0x and 64 hex digits, or a reference to a key (pkcs11:…)',
)

const secret = keyOrReference((text) => (text.length < 32 ? 'must have 32 characters or more' : undefined))

const documentKey = z
  .string()
  // Most environments hold one line, with `\n` in place of line breaks.
  .transform((text) => text.replaceAll('\\n', '\n'))
  .pipe(
    keyOrReference((text) =>
      isEd25519(text)
        ? undefined
        : 'must be an Ed25519 private key in PEM, or a reference to a key (pkcs11:…)',
    ),
  )

export const keyVariables = {
  SESSION_SECRET: secret.optional(),
  SESSION_SECRET_PREVIOUS: secret.optional(),
  DATA_KEY: secret.optional(),
  DATA_KEY_PREVIOUS: secret.optional(),
  RECEIPT_KEY: documentKey.optional(),
  PKCS11_MODULE: z.string().startsWith('/', 'must be the absolute path of a library').optional(),
  PKCS11_PIN: z.string().min(1).optional(),
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
  /** Where keys in tokens are reached. */
  readonly pkcs11: { readonly module: string | null; readonly pin: string | null }
}

export function readKeys(settings: z.output<typeof variables>): KeyConfig {
  return {
    sessionSecret: settings.SESSION_SECRET ?? null,
    sessionSecretPrevious: settings.SESSION_SECRET_PREVIOUS ?? null,
    dataKey: settings.DATA_KEY ?? null,
    dataKeyPrevious: settings.DATA_KEY_PREVIOUS ?? null,
    receiptKey: settings.RECEIPT_KEY ?? null,
    pkcs11: { module: settings.PKCS11_MODULE ?? null, pin: settings.PKCS11_PIN ?? null },
  }
}

function isEd25519(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'ed25519'
  } catch {
    return false
  }
}
