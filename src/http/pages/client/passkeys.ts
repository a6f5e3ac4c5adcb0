/** Passkeys: a challenge from the gateway, the browser's part, and back. */
import type * as Library from '@simplewebauthn/browser'
import { type Answer, ask, isObject } from './api.ts'

declare global {
  /** The library's own bundle, which the page loads before us. */
  const SimpleWebAuthnBrowser: typeof Library
}

const ROUTE = '/api/auth/webauthn'

/** Whether this browser can use passkeys at this address. */
export function canUsePasskeys(): boolean {
  return SimpleWebAuthnBrowser.browserSupportsWebAuthn()
}

/** Signs in with a passkey. */
export async function signInWithPasskey(): Promise<void> {
  const { challengeId, publicKey } = await ask('POST', ROUTE, { action: 'login' })
  await ask('POST', ROUTE, { action: 'login', challengeId, credential: await assertionFor(publicKey) })
}

/** A passkey's answer to a challenge. @param publicKey WebAuthn request options as the gateway sent them. */
export async function assertionFor(publicKey: unknown): Promise<Library.AuthenticationResponseJSON> {
  if (!isRequest(publicKey)) throw new Error('The gateway sent no challenge.')
  return SimpleWebAuthnBrowser.startAuthentication({ optionsJSON: publicKey })
}

/** Makes a passkey: for a new account of this name, or one more for whoever is signed in. */
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
