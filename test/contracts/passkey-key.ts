/** The P-256 public key of a new passkey. */
import {
  cose,
  decodeAttestationObject,
  decodeCredentialPublicKey,
  parseAuthenticatorData,
} from '@simplewebauthn/server/helpers'
import { z } from 'zod'
import type { Hex } from '../../src/providers/chain/port.ts'
import type { Credential } from '../people/identity/authenticator.ts'

const registration = z.looseObject({ response: z.looseObject({ attestationObject: z.string() }) })

export async function parseAttestation(credential: Credential): Promise<{ x: Hex; y: Hex }> {
  const { attestationObject } = registration.parse(credential).response
  const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
  const { credentialPublicKey } = parseAuthenticatorData(attestation.get('authData'))
  if (credentialPublicKey === undefined) throw new Error('the credential has no key')
  const key = decodeCredentialPublicKey(credentialPublicKey)
  if (!cose.isCOSEPublicKeyEC2(key)) throw new Error('the key is not on P-256')
  const toHex = (bytes: Uint8Array | undefined): Hex => `0x${Buffer.from(bytes ?? []).toString('hex')}`
  return { x: toHex(key.get(cose.COSEKEYS.x)), y: toHex(key.get(cose.COSEKEYS.y)) }
}
