/** The sign-in page, and the one that an identity provider sends people back to. */
import type { Channel } from '../../providers/messages.ts'

/** What a deployment offers. */
export interface SignInProps {
  readonly isSignedIn: boolean
  readonly isSandbox: boolean
  readonly channels: readonly Channel[]
  /** Identity providers by the name in their route. */
  readonly providers: readonly string[]
  readonly guests: boolean
}

/** Every way in, and what a person who is in does with it. */
export function SignInPage({ isSignedIn, isSandbox, channels, providers, guests }: SignInProps) {
  return (
    <Shell title="Sign in" page={isSignedIn ? 'account' : 'sign-in'}>
      <section id="signed-out" hidden={isSignedIn} aria-labelledby="sign-in-title">
        <h1 id="sign-in-title">Sign in to Bursar</h1>
        <PasskeyForms />
        {channels.length > 0 && <CodeForms channels={channels} isSandbox={isSandbox} />}
        {(providers.length > 0 || guests) && <OtherWays providers={providers} guests={guests} />}
      </section>
      <section id="signed-in" hidden={!isSignedIn} aria-labelledby="account-title">
        <AccountSection />
      </section>
      <StepUpForm />
    </Shell>
  )
}

/** Where a provider sends people back to: the script exchanges what came along. */
export function CallbackPage({ provider }: { readonly provider: string }) {
  return (
    <Shell title="Signing in" page="callback" provider={provider}>
      <h1>Signing in with {nameOf(provider)}</h1>
      <p>
        <a href="/sign-in">Back to all ways in</a>
      </p>
    </Shell>
  )
}

function Shell({
  title,
  page,
  provider,
  children,
}: {
  readonly title: string
  readonly page: 'sign-in' | 'account' | 'callback'
  readonly provider?: string
  readonly children?: unknown
}) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Bursar`}</title>
        <link rel="stylesheet" href="/assets/sign-in.css" />
        <script src="/assets/webauthn.js" defer />
        <script src="/assets/sign-in.js" type="module" />
      </head>
      <body data-page={page} data-provider={provider}>
        <main>
          {children}
          <p id="status" role="status" aria-live="polite" />
          <noscript>
            <p>This page needs JavaScript: passkeys cannot be used without it.</p>
          </noscript>
        </main>
      </body>
    </html>
  )
}

function PasskeyForms() {
  return (
    <>
      <form id="passkey-sign-in">
        <button type="submit" class="primary">
          Sign in with a passkey
        </button>
      </form>
      <details>
        <summary>Create an account</summary>
        <form id="passkey-create">
          <label for="display-name">Your name</label>
          <input id="display-name" name="displayName" autocomplete="name" maxlength={80} required />
          <button type="submit">Create account with a passkey</button>
        </form>
      </details>
    </>
  )
}

const channelNames: Readonly<Record<Channel, string>> = { email: 'E-mail', sms: 'Phone' }

function CodeForms({ channels, isSandbox }: Pick<SignInProps, 'channels' | 'isSandbox'>) {
  return (
    <details>
      <summary>Use a one-time code</summary>
      <form id="code-start">
        <fieldset>
          <legend>Send it by</legend>
          {channels.map((channel, at) => (
            <label class="choice">
              <input type="radio" name="channel" value={channel} checked={at === 0} /> {channelNames[channel]}
            </label>
          ))}
        </fieldset>
        <label for="destination">E-mail address or phone number</label>
        <input
          id="destination"
          name="destination"
          autocomplete="username"
          maxlength={254}
          aria-describedby="destination-hint"
          required
        />
        <p id="destination-hint" class="hint">
          Phone numbers with their country, such as +49 30 901820.
        </p>
        <button type="submit">Send a code</button>
      </form>
      <form id="code-verify" hidden>
        <label for="code">Six-digit code</label>
        <input
          id="code"
          name="code"
          inputmode="numeric"
          autocomplete="one-time-code"
          pattern="[0-9]{6}"
          maxlength={6}
          required
        />
        {isSandbox && (
          <p class="hint">
            This is a sandbox: nothing is sent. <a href="/sandbox/outbox">The outbox shows the code.</a>
          </p>
        )}
        <button type="submit">Sign in with the code</button>
      </form>
    </details>
  )
}

function OtherWays({ providers, guests }: Pick<SignInProps, 'providers' | 'guests'>) {
  return (
    <div class="others">
      {providers.map((provider) => (
        <form data-provider={provider}>
          <button type="submit">Continue with {nameOf(provider)}</button>
        </form>
      ))}
      {guests && (
        <form id="guest">
          <button type="submit">Try it as a guest</button>
        </form>
      )}
    </div>
  )
}

function AccountSection() {
  return (
    <>
      <h1 id="account-title">
        Signed in as <span id="who">…</span>
      </h1>
      <p id="account-id" class="hint" />
      <h2>Passkeys</h2>
      <ul id="passkeys" />
      <div class="others">
        <form id="passkey-add">
          <button type="submit">Add a passkey</button>
        </form>
        <form id="sign-out">
          <button type="submit">Sign out</button>
        </form>
      </div>
    </>
  )
}

function StepUpForm() {
  return (
    <form id="step-up" hidden>
      <label for="step-up-code">Code of your authenticator app</label>
      <input
        id="step-up-code"
        name="code"
        inputmode="numeric"
        autocomplete="one-time-code"
        pattern="[0-9]{6}"
        maxlength={6}
        required
      />
      <button type="submit">Confirm</button>
    </form>
  )
}

function nameOf(provider: string): string {
  return provider.charAt(0).toUpperCase() + provider.slice(1)
}
