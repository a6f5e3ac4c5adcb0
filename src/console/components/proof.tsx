/** Asks for the second factor that a privileged call requires, wherever in the console it was made. */
import { useState } from 'preact/hooks'
import { account, signInAnew } from '../data/account.ts'
import { bursar, describeError, pendingProof } from '../data/gateway.ts'
import { AuthenticatorCode } from './code-field.tsx'
import { ActionButton, Dialog, DialogButtons, Field } from './controls.tsx'

export function ProofDialog() {
  const pending = pendingProof.value
  if (pending === null) return null
  const person = account.value
  if (person?.mfaEnrolled === false)
    return <SignInAnew detail={pending.detail} isGuest={person.guest} close={() => pending.settle(false)} />
  return <Asking detail={pending.detail} settle={pending.settle} />
}

/** Without a second factor a fresh sign-in is the proof. A guest has no way back in, and stays. */
function SignInAnew({
  detail,
  isGuest,
  close,
}: {
  readonly detail: string
  readonly isGuest: boolean
  readonly close: () => void
}) {
  return (
    <Dialog title="Confirm that it is you" close={close}>
      <p>{detail}</p>
      {!isGuest && <p>Sign in again, and you come back to this page. Nothing was changed yet.</p>}
      <div class="dialog__buttons">
        <button class="btn" type="button" onClick={close}>
          {isGuest ? 'Close' : 'Cancel'}
        </button>
        {!isGuest && (
          <ActionButton
            kind="primary"
            run={async () => {
              close()
              await signInAnew()
            }}
            autofocus
          >
            Sign in again
          </ActionButton>
        )}
      </div>
    </Dialog>
  )
}

function Asking({
  detail,
  settle,
}: {
  readonly detail: string
  readonly settle: (isProven: boolean) => void
}) {
  const [isRecovery, setRecovery] = useState(false)
  const [code, setCode] = useState('')
  const [recoveryCode, setRecoveryCode] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const switchKind = () => {
    setRecovery(!isRecovery)
    setProblem('')
  }
  const confirm = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget
    if (!(form instanceof HTMLFormElement)) return
    setBusy(true)
    try {
      await bursar.security.mfa({
        action: 'verify',
        ...(isRecovery ? { recoveryCode: recoveryCode.trim() } : { code }),
      })
      settle(true)
    } catch (error) {
      setProblem(describeError(error))
      form.querySelector('input')?.select()
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title="Confirm that it is you" close={() => settle(false)}>
      <p>{detail}</p>
      <form onSubmit={(event) => void confirm(event)}>
        {isRecovery ? (
          <Field label="Recovery code" error={problem}>
            {(props) => (
              <input
                class="input num"
                required
                autofocus
                autoComplete="off"
                spellcheck={false}
                value={recoveryCode}
                onInput={(event) => setRecoveryCode(event.currentTarget.value)}
                {...props}
              />
            )}
          </Field>
        ) : (
          <AuthenticatorCode value={code} change={setCode} error={problem} />
        )}
        <button class="linkbtn small" type="button" onClick={switchKind}>
          {isRecovery ? 'Use the authenticator app' : 'Use a recovery code'}
        </button>
        <DialogButtons close={() => settle(false)}>
          <button class="btn btn--primary" type="submit" disabled={isBusy}>
            Confirm
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
