/** The sign-in page and the callback page of identity providers. */
import { RecoveryForms } from './recovery.tsx'
import { Shell } from './shell.tsx'
import { nameOf, type Offer, SignInMethods } from './sign-in-methods.tsx'
import { StepUpForms } from './step-up.tsx'

/** @property refusal why the browser's session was rejected; null if it is valid or absent. */
export interface SignInProps extends Offer {
  readonly isSignedIn: boolean
  readonly refusal: { readonly detail: string; readonly isLocked: boolean } | null
}

const webAuthn = <script src="/assets/webauthn.js" defer />

/** All sign-in methods, and the account section after sign-in. */
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
        <SignInMethods {...offer} />
        <RecoveryForms {...offer} isOpen={refusal?.isLocked === true} />
      </section>
      <section id="signed-in" hidden={!isSignedIn} aria-labelledby="account-title">
        <AccountSection />
      </section>
      <StepUpForms />
    </Shell>
  )
}

/** Redirect target of identity providers; the script exchanges the code. */
export function CallbackPage({ provider }: { readonly provider: string }) {
  return (
    <Shell title="Signing in" script="sign-in" page="callback" before={webAuthn} provider={provider}>
      <h1 tabindex={-1}>Signing in with {nameOf(provider)}</h1>
      <p>
        <a href="/sign-in">All sign-in methods</a>
      </p>
    </Shell>
  )
}

function newsOf(refusal: SignInProps['refusal']): string {
  if (refusal === null) return ''
  return `${refusal.detail} ${refusal.isLocked ? 'Use “Locked out?” to recover it.' : 'Please sign in again.'}`
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
