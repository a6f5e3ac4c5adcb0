/** The sign-in page, and the one that an identity provider sends people back to. */
import { RecoveryForms } from './recovery.tsx'
import { Shell } from './shell.tsx'
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

const webAuthn = <script src="/assets/webauthn.js" defer />

/** Every way in, and what a person who is in does with it. */
export function SignInPage({ isSignedIn, refusal, ...offer }: SignInProps) {
  return (
    <Shell
      title="Sign in"
      script="sign-in"
      page={isSignedIn ? 'account' : 'sign-in'}
      before={webAuthn}
      news={newsOf(refusal)}
    >
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
    <Shell title="Signing in" script="sign-in" page="callback" before={webAuthn} provider={provider}>
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
