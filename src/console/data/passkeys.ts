/** The browser's passkeys. The library is loaded when one is first asked for. */
import type { PublicKeyCredentialCreationOptionsJSON } from '@simplewebauthn/browser'
import { bursar } from './gateway.ts'
import type { Signed } from './payments.ts'

/**
 * Signs 32 bytes with a passkey of this account. @param challenge base64url. @returns the assertion as base64url JSON,
 * as the transfer's `signature` wants it. @throws DOMException when the person cancels
 */
export async function signWithPasskey(challenge: string): Promise<string> {
  const { startAuthentication } = await import('@simplewebauthn/browser')
  const assertion = await startAuthentication({ optionsJSON: { challenge, userVerification: 'required' } })
  const bytes = new TextEncoder().encode(JSON.stringify(assertion))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

/** Signs an intent with the passkey that owns the wallet. @returns null where none does: the gateway signs. */
export async function signIntent(
  ask: () => Promise<{ readonly intentId: string; readonly challenge: string }>,
): Promise<Signed | null> {
  const { signers } = await bursar.wallets.signers.list()
  if (!signers.some(({ type }) => type === 'passkey')) return null
  const { intentId, challenge } = await ask()
  return { intentId, signature: await signWithPasskey(challenge) }
}

/** Adds a passkey of this device to the account. A guest becomes a person by it. */
export async function addPasskey(displayName?: string): Promise<void> {
  const { startRegistration } = await import('@simplewebauthn/browser')
  // Without a session, registration would create a new account.
  await bursar.auth.session()
  const named = displayName === undefined ? {} : { displayName }
  const { challengeId, publicKey } = await bursar.auth.webauthn({
    action: 'register',
    credential: null,
    ...named,
  })
  if (challengeId === undefined || !isCreation(publicKey))
    throw new TypeError('The gateway sent no challenge.')
  const credential = await startRegistration({ optionsJSON: publicKey })
  await bursar.auth.webauthn({ action: 'register', challengeId, credential: { ...credential } })
}

function isCreation(options: unknown): options is PublicKeyCredentialCreationOptionsJSON {
  return typeof options === 'object' && options !== null && 'challenge' in options && 'user' in options
}
