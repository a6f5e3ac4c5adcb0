/** Creates passkeys and signs in with them. */
import type * as Library from '@simplewebauthn/browser'
import { type Answer, ask, isObject } from './api.ts'

declare global {
  /** Loaded by the page before this script. */
  const SimpleWebAuthnBrowser: typeof Library
}

const ROUTE = '/api/auth/webauthn'

export function canUsePasskeys(): boolean {
  return SimpleWebAuthnBrowser.browserSupportsWebAuthn()
}

export async function signInWithPasskey(): Promise<void> {
  const { challengeId, publicKey } = await ask('POST', ROUTE, { action: 'login' })
  await ask('POST', ROUTE, { action: 'login', challengeId, credential: await assertionFor(publicKey) })
}

/** Signs a challenge with a passkey. @param publicKey WebAuthn request options from the gateway. */
export async function assertionFor(publicKey: unknown): Promise<Library.AuthenticationResponseJSON> {
  if (!isRequest(publicKey)) throw new Error('The gateway sent no challenge.')
  return SimpleWebAuthnBrowser.startAuthentication({ optionsJSON: publicKey })
}

/** Creates a passkey, for a new account with this name or for the account that is signed in. */
export async function makePasskey(named: Answer = {}): Promise<void> {
  const { challengeId, publicKey } = await ask('POST', ROUTE, { action: 'register', ...named })
  if (!isCreation(publicKey)) throw new Error('The gateway sent no challenge.')
  const credential = await SimpleWebAuthnBrowser.startRegistration({ optionsJSON: publicKey })
  await ask('POST', ROUTE, { action: 'register', challengeId, credential })
}

function isRequest(options: unknown): options is Library.PublicKeyCredentialRequestOptionsJSON {
  return isObject(options) && typeof options.challenge === 'string'
}

function isCreation(options: unknown): options is Library.PublicKeyCredentialCreationOptionsJSON {
  return isRequest(options) && 'rp' in options && 'user' in options && 'pubKeyCredParams' in options
}
