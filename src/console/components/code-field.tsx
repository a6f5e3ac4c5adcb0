/** The six digits of an authenticator app. */
import { Field } from './controls.tsx'

const DIGITS = 6

/** True for a code that can be checked. A wrong one counts towards the lock of the account, so none is sent half. */
export function isCode(text: string): boolean {
  return text.length === DIGITS && /^\d+$/.test(text)
}

/** Field for a code. Apps show it in two groups, and people copy it with the space between. */
export function CodeField({
  label,
  value,
  change,
  error,
  autofocus = false,
}: {
  readonly label: string
  readonly value: string
  readonly change: (code: string) => void
  readonly error?: string | undefined
  readonly autofocus?: boolean
}) {
  return (
    <Field label={label} error={error}>
      {(props) => (
        <input
          class="input num"
          inputMode="numeric"
          autoComplete="one-time-code"
          required
          pattern={`[0-9]{${DIGITS}}`}
          autofocus={autofocus}
          value={value}
          onInput={(event) => {
            const { currentTarget } = event
            currentTarget.value = currentTarget.value.normalize('NFKC').replace(/\D/g, '').slice(0, DIGITS)
            change(currentTarget.value)
          }}
          {...props}
        />
      )}
    </Field>
  )
}

/** Field for the code that proves who is here. */
export function AuthenticatorCode(props: {
  readonly value: string
  readonly change: (code: string) => void
  readonly error?: string | undefined
}) {
  return <CodeField label="Code from your authenticator app" autofocus {...props} />
}
