/** Runs one user action at a time and handles its failures. */
import { focusHeading, tell } from './elements.ts'

export type Work = () => Promise<void>

/** Handler for a failure code. @param words message that was shown. */
export type Remedy = (work: Work, words: string) => void | Promise<void>

const remedies = new Map<string, Remedy>()

/** Registers the handler for a failure code. */
export function onRefusal(code: string, remedy: Remedy): void {
  remedies.set(code, remedy)
}

/** Runs work when a form is submitted. Its buttons, disabled until now where they are shown at once, work from here on. */
export function onSubmit(form: HTMLFormElement | null, work: (form: HTMLFormElement) => Promise<void>): void {
  for (const button of form?.querySelectorAll('button') ?? []) button.disabled = false
  form?.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => work(form))
  })
}

/** Runs an action with all buttons disabled, and shows its outcome. */
export async function attempt(work: Work): Promise<void> {
  const focused = document.activeElement
  const enabled = [...document.querySelectorAll('button')].filter((button) => !button.disabled)
  for (const button of enabled) button.disabled = true
  tell('One moment…')
  try {
    await work()
  } catch (error) {
    const words = describeError(error)
    tell(words, 'error')
    const code = error instanceof Error && typeof error.cause === 'string' ? error.cause : ''
    await remedies.get(code)?.(work, words)
  } finally {
    for (const button of enabled) button.disabled = false
    keepFocus(focused)
  }
}

/** Restores the focus that disabling a button loses; moves it to the heading if the button has disappeared. */
function keepFocus(before: Element | null): void {
  const now = document.activeElement
  const isLost = now === null || now === document.body || !now.checkVisibility()
  if (!isLost || before === null || before === document.body) return
  if (before instanceof HTMLElement && before.isConnected && before.checkVisibility()) before.focus()
  else focusHeading()
}

/** User-facing messages for browser errors, by name. */
const browserErrors: Readonly<Record<string, string>> = {
  NotAllowedError: 'No passkey was used: the request was cancelled or timed out.',
  InvalidStateError: 'This device already has a passkey for this account.',
  AbortError: 'The request was cancelled.',
  SecurityError: 'Passkeys do not work at this address.',
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return 'Something went wrong.'
  return browserErrors[error.name] ?? error.message
}
