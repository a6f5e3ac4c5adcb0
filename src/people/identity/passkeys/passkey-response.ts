/**
 * Schemas of WebAuthn responses, with size limits.
 * @see https://www.w3.org/TR/webauthn-3/#dictdef-registrationresponsejson
 */
import { z } from 'zod'

const clientData = z.looseObject({
  challenge: z.string().regex(/^[A-Za-z0-9_-]{16,256}$/),
})

const base64url = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[A-Za-z0-9_-]+$/, 'must be base64url')

const common = {
  id: base64url(1400).describe('Credential id, base64url.'),
  rawId: base64url(1400).describe('Same as `id`.'),
  type: z.literal('public-key').describe('Always `public-key`.'),
}

const clientDataJson = base64url(4096)
  .refine((text) => readChallenge(text) !== undefined, 'must be client data with a challenge')
  .describe('Client data that the browser signed, base64url.')

/** A credential of either response type. */
export const passkeyResponse = z.looseObject({
  ...common,
  response: z.looseObject({ clientDataJSON: clientDataJson }).describe('The authenticator’s response.'),
})

export const registrationResponse = z.looseObject({
  ...common,
  response: z
    .looseObject({
      clientDataJSON: clientDataJson,
      attestationObject: base64url(16_384).describe('Attestation with the new public key, base64url.'),
      transports: z.array(z.string().max(32)).max(8).optional().describe('Transports of the authenticator.'),
    })
    .describe('The authenticator’s response.'),
})

export const authenticationResponse = z.looseObject({
  ...common,
  response: z
    .looseObject({
      clientDataJSON: clientDataJson,
      authenticatorData: base64url(4096).describe('Authenticator data, base64url.'),
      signature: base64url(2048).describe('Signature, base64url.'),
      userHandle: base64url(128).nullish().describe('User handle, base64url.'),
    })
    .describe('The authenticator’s response.'),
})

export type RegistrationResponse = z.output<typeof registrationResponse>

export type AuthenticationResponse = z.output<typeof authenticationResponse>

/** Reads a response's challenge, base64url; undefined for invalid client data. */
export function readChallenge(clientDataJSON: string): string | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString())
    return clientData.safeParse(read).data?.challenge
  } catch {
    return undefined
  }
}

/** Parses an assertion from base64url JSON; undefined if it is invalid. */
export function readAssertion(text: string): AuthenticationResponse | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return authenticationResponse.safeParse(read).data
  } catch {
    return undefined
  }
}
