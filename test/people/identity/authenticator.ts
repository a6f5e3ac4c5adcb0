/** A software authenticator: creates and uses passkeys, on the page of an origin. */
import {
  AuthenticatorEmulator,
  deserializeCredential,
  PasskeysCredentialsMemoryRepository,
  serializeCredential,
  WebAuthnEmulator,
} from 'nid-webauthn-emulator'
import { z } from 'zod'

/**
 * An authenticator. Both methods take the options of POST /api/auth/webauthn and return the `credential` of its second
 * step.
 */
export interface Authenticator {
  create(publicKey: unknown, origin?: string): Credential
  get(publicKey: unknown, origin?: string): Credential
  /** The same passkeys on a second device, as a thief would have. */
  clone(): Authenticator
}

const credential = z.looseObject({
  id: z.string(),
  response: z.looseObject({ clientDataJSON: z.string(), signature: z.string().optional() }),
})

/** A credential in the browser's JSON form. */
export type Credential = z.output<typeof credential>

const creation = z.looseObject({
  challenge: z.string(),
  rp: z.looseObject({ id: z.string(), name: z.string() }),
  user: z.looseObject({ id: z.string(), name: z.string(), displayName: z.string() }),
  pubKeyCredParams: z.array(z.object({ alg: z.number(), type: z.literal('public-key') })),
  excludeCredentials: z.array(z.object({ id: z.string(), type: z.literal('public-key') })).optional(),
  authenticatorSelection: z
    .object({ residentKey: z.literal('required'), userVerification: z.literal('required') })
    .optional(),
})
const request = z.looseObject({
  challenge: z.string(),
  rpId: z.string(),
  userVerification: z.literal('required'),
})

/** An empty authenticator. @param home the default origin of its page. */
export function newAuthenticator(home: string): Authenticator {
  return authenticatorOn(new PasskeysCredentialsMemoryRepository(), home)
}

function authenticatorOn(passkeys: PasskeysCredentialsMemoryRepository, home: string): Authenticator {
  const device = new WebAuthnEmulator(new AuthenticatorEmulator({ credentialsRepository: passkeys }))
  return {
    create: (publicKey, origin = home) => {
      const { excludeCredentials = [], authenticatorSelection, ...options } = creation.parse(publicKey)
      return credential.parse(
        device.createJSON(origin, {
          ...options,
          excludeCredentials,
          ...(authenticatorSelection === undefined ? {} : { authenticatorSelection }),
        }),
      )
    },
    get: (publicKey, origin = home) => credential.parse(device.getJSON(origin, request.parse(publicKey))),
    clone: () => {
      const copies = new PasskeysCredentialsMemoryRepository()
      for (const passkey of passkeys.loadCredentials())
        copies.saveCredential(deserializeCredential(serializeCredential(passkey)))
      return authenticatorOn(copies, home)
    },
  }
}
