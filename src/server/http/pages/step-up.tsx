/** Step-up forms: an authenticator code or a recovery code. */
import { SixDigits } from './code-fields.tsx'

export function StepUpForms() {
  return (
    <section id="step-up" hidden aria-labelledby="step-up-title">
      <h2 id="step-up-title">Confirm your identity</h2>
      <form id="step-up-app" method="post">
        <label for="step-up-code">Code from your authenticator app</label>
        <SixDigits id="step-up-code" />
        <button type="submit">Confirm</button>
      </form>
      <details>
        <summary>No app at hand?</summary>
        <form id="step-up-recovery" method="post">
          <label for="step-up-recovery-code">One of your recovery codes</label>
          <input
            id="step-up-recovery-code"
            name="recoveryCode"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            minlength={16}
            maxlength={32}
            required
          />
          <button type="submit">Use the recovery code</button>
        </form>
      </details>
    </section>
  )
}
