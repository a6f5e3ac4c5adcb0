/** The sign-in page, and the one that an identity provider sends people back to. */
import { RecoveryForms } from './recovery.tsx'
import { StepUpForms } from './step-up.tsx'
import { nameOf, type Offer, WaysIn } from './ways-in.tsx'

/**
 * What a visit finds.
 * @property refusal why the session that the browser has shown does not hold; null where it does, or none was shown.
 */
export interface SignInProps extends Offer {
  readonly isSignedIn: boolean
  readonly refusal: { readonly detail: string; readonly isLocked: boolean } | null
}

/** Every way in, and what a person who is in does with it. */
export function SignInPage({ isSignedIn, refusal, ...offer }: SignInProps) {
  return (
    <Shell title="Sign in" page={isSignedIn ? 'account' : 'sign-in'} news={newsOf(refusal)}>
      <section id="signed-out" hidden={isSignedIn} aria-labelledby="sign-in-title">
        <h1 id="sign-in-title" tabindex={-1}>
          Sign in to Bursar
        </h1>
        <WaysIn {...offer} />
        <RecoveryForms {...offer} isOpen={refusal?.isLocked === true} />
      </section>
      <section id="signed-in" hidden={!isSignedIn} aria-labelledby="account-title">
        <AccountSection />
      </section>
      <StepUpForms />
    </Shell>
  )
}

/** Where a provider sends people back to: the script exchanges what came along. */
export function CallbackPage({ provider }: { readonly provider: string }) {
  return (
    <Shell title="Signing in" page="callback" provider={provider}>
      <h1 tabindex={-1}>Signing in with {nameOf(provider)}</h1>
      <p>
        <a href="/sign-in">Back to all ways in</a>
      </p>
    </Shell>
  )
}

function newsOf(refusal: SignInProps['refusal']): string {
  if (refusal === null) return ''
  return `${refusal.detail} ${refusal.isLocked ? 'Use “Locked out?” to get it back.' : 'Please sign in again.'}`
}

function Shell({
  title,
  page,
  provider,
  news = '',
  children,
}: {
  readonly title: string
  readonly page: 'sign-in' | 'account' | 'callback'
  readonly provider?: string
  readonly news?: string
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
          <noscript>
            <p class="error">This page needs JavaScript: nothing on it works without.</p>
          </noscript>
          {children}
          <p id="status" role="status" aria-live="polite" data-kind={news === '' ? undefined : 'error'}>
            {news}
          </p>
        </main>
      </body>
    </html>
  )
}

function AccountSection() {
  return (
    <>
      <h1 id="account-title" tabindex={-1}>
        Signed in as <span id="who">…</span>
      </h1>
      <p id="account-id" class="hint" />
      <h2>Passkeys</h2>
      <ul id="passkeys" />
      <div class="others">
        <form id="passkey-add" method="post">
          <button type="submit">Add a passkey</button>
        </form>
        <form id="sign-out" method="post">
          <button type="submit">Sign out</button>
        </form>
      </div>
    </>
  )
}
