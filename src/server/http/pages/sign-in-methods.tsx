/** Sign-in methods that the deployment offers: passkeys, codes, identity providers and guests. */
import type { Channel } from '../../../providers/messages/port.ts'
import { CodeField, DestinationFields } from './code-fields.tsx'

export interface Offer {
  readonly isSandbox: boolean
  readonly channels: readonly Channel[]
  /** Identity providers, by the name in their route. */
  readonly providers: readonly string[]
  readonly guests: boolean
}

export function SignInMethods({ channels, isSandbox, providers, guests }: Offer) {
  return (
    <>
      <PasskeyForms />
      {channels.length > 0 && <CodeForms channels={channels} isSandbox={isSandbox} />}
      {(providers.length > 0 || guests) && <OtherWays providers={providers} guests={guests} />}
    </>
  )
}

/** Display name of a provider. */
export function nameProvider(provider: string): string {
  return provider.charAt(0).toUpperCase() + provider.slice(1)
}

function PasskeyForms() {
  return (
    <>
      <form id="passkey-sign-in" method="post">
        <button type="submit" class="primary">
          Sign in with a passkey
        </button>
      </form>
      <details>
        <summary>Create an account</summary>
        <form id="passkey-create" method="post">
          <label for="display-name">Your name</label>
          <input id="display-name" name="displayName" autocomplete="name" maxlength={80} required />
          <button type="submit">Create account with a passkey</button>
        </form>
      </details>
    </>
  )
}

function CodeForms({ channels, isSandbox }: Pick<Offer, 'channels' | 'isSandbox'>) {
  return (
    <details>
      <summary>Use a one-time code</summary>
      <form id="code-start" method="post">
        <DestinationFields channels={channels} id="destination" />
        <button type="submit">Send a code</button>
      </form>
      <form id="code-verify" method="post" hidden>
        <CodeField id="code" label="Six-digit code" isSandbox={isSandbox} />
        <button type="submit">Sign in with the code</button>
      </form>
    </details>
  )
}

function OtherWays({ providers, guests }: Pick<Offer, 'providers' | 'guests'>) {
  return (
    <div class="others">
      {providers.map((provider) => (
        <form data-provider={provider} method="post">
          <button type="submit">Continue with {nameProvider(provider)}</button>
        </form>
      ))}
      {guests && (
        <form id="guest" method="post">
          <button type="submit">Continue as a guest</button>
        </form>
      )}
    </div>
  )
}
