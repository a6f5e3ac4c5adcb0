/** What a browser's authenticator answers, as JSON: the two shapes of WebAuthn, bounded. @see https://www.w3.org/TR/webauthn-3/#dictdef-registrationresponsejson */
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
  rawId: base64url(1400).describe('The same as `id`.'),
  type: z.literal('public-key').describe('Always `public-key`.'),
}

const clientDataJson = base64url(4096)
  .refine((text) => readChallenge(text) !== undefined, 'must be client data with a challenge')
  .describe('What the browser signed, base64url.')

/** A credential in either shape. */
export const passkeyResponse = z.looseObject({
  ...common,
  response: z.looseObject({ clientDataJSON: clientDataJson }).describe('The authenticator’s response.'),
})

/** A credential that was just made. */
export const registrationResponse = z.looseObject({
  ...common,
  response: z
    .looseObject({
      clientDataJSON: clientDataJson,
      attestationObject: base64url(16_384).describe('The new public key, base64url.'),
      transports: z.array(z.string().max(32)).max(8).optional().describe('How to reach the authenticator.'),
    })
    .describe('The authenticator’s response.'),
})

/** A credential that was just used. */
export const authenticationResponse = z.looseObject({
  ...common,
  response: z
    .looseObject({
      clientDataJSON: clientDataJson,
      authenticatorData: base64url(4096).describe('Base64url.'),
      signature: base64url(2048).describe('Base64url.'),
      userHandle: base64url(128).nullish().describe('Base64url.'),
    })
    .describe('The authenticator’s response.'),
})

/** {@link registrationResponse}, parsed. */
export type RegistrationResponse = z.output<typeof registrationResponse>

/** {@link authenticationResponse}, parsed. */
export type AuthenticationResponse = z.output<typeof authenticationResponse>

/** The challenge that a response answers, base64url; undefined where its client data cannot be read. */
export function readChallenge(clientDataJSON: string): string | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString())
    return clientData.safeParse(read).data?.challenge
  } catch {
    return undefined
  }
}

/** An assertion that came as the base64url of its JSON; undefined where it is none. */
export function readAssertion(text: string): AuthenticationResponse | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return authenticationResponse.safeParse(read).data
  } catch {
    return undefined
  }
}
