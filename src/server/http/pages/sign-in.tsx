/** The sign-in page and the callback page of identity providers. */
import { RecoveryForms } from './recovery.tsx'
import { Shell } from './shell.tsx'
import { nameProvider, type Offer, SignInMethods } from './sign-in-methods.tsx'

/** @property refusal why the browser's session was rejected; null if it is valid or absent. */
export interface SignInProps extends Offer {
  readonly refusal: { readonly detail: string; readonly isLocked: boolean } | null
}

const webAuthn = <script src="/assets/webauthn.js" defer />

/** All sign-in methods, and the outcome of a recovery. */
export function SignInPage({ refusal, ...offer }: SignInProps) {
  return (
    <Shell title="Sign in" script="sign-in" before={webAuthn} news={explainSignOut(refusal)}>
      <section id="signed-out" aria-labelledby="sign-in-title">
        <h1 id="sign-in-title" tabindex={-1}>
          Sign in to Bursar
        </h1>
        <SignInMethods {...offer} />
        <RecoveryForms {...offer} isOpen={refusal?.isLocked === true} />
      </section>
      <section id="recovered" hidden aria-labelledby="recovered-title">
        <h1 id="recovered-title" tabindex={-1}>
          Your account is unlocked
        </h1>
        <p>All other sessions are signed out, and its keys are paused. Start the ones that you trust.</p>
        <a id="recovered-next" class="button primary" href="/">
          Continue
        </a>
      </section>
    </Shell>
  )
}

/** Redirect target of identity providers; the script exchanges the code. */
export function CallbackPage({ provider }: { readonly provider: string }) {
  return (
    <Shell title="Signing in" script="sign-in" page="callback" before={webAuthn} provider={provider}>
      <h1 tabindex={-1}>Signing in with {nameProvider(provider)}</h1>
      <p>
        <a href="/sign-in">All sign-in methods</a>
      </p>
    </Shell>
  )
}

function explainSignOut(refusal: SignInProps['refusal']): string {
  if (refusal === null) return ''
  return `${refusal.detail} ${refusal.isLocked ? 'Use “Locked out?” to recover it.' : 'Please sign in again.'}`
}
