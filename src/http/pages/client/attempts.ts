/** Attempts: what a person starts with a button, one at a time, and what helps when it is refused. */
import { focusHeading, tell } from './elements.ts'

/** What a person has started. */
export type Work = () => Promise<void>

/** What is done about a refusal. @param words what the person was told. */
export type Remedy = (work: Work, words: string) => void | Promise<void>

const remedies = new Map<string, Remedy>()

/** Has something done about every refusal with this code. */
export function onRefusal(code: string, remedy: Remedy): void {
  remedies.set(code, remedy)
}

/** Does the work of a form when it is submitted. */
export function onSubmit(form: HTMLFormElement | null, work: (form: HTMLFormElement) => Promise<void>): void {
  form?.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => work(form))
  })
}

/** Tries something while nothing else can be started, and tells how it went. */
export async function attempt(work: Work): Promise<void> {
  const focused = document.activeElement
  const enabled = [...document.querySelectorAll('button')].filter((button) => !button.disabled)
  for (const button of enabled) button.disabled = true
  tell('One moment…')
  try {
    await work()
  } catch (error) {
    const words = messageOf(error)
    tell(words, 'error')
    const code = error instanceof Error && typeof error.cause === 'string' ? error.cause : ''
    await remedies.get(code)?.(work, words)
  } finally {
    for (const button of enabled) button.disabled = false
    keepFocus(focused)
  }
}

/** A button loses the focus while it is disabled; it gets it back, or the heading does where it is gone. */
function keepFocus(before: Element | null): void {
  const now = document.activeElement
  const isLost = now === null || now === document.body || !now.checkVisibility()
  if (!isLost || before === null || before === document.body) return
  if (before instanceof HTMLElement && before.isConnected && before.checkVisibility()) before.focus()
  else focusHeading()
}

/** The browser's own errors in plain words. */
const browserErrors: Readonly<Record<string, string>> = {
  NotAllowedError: 'No passkey was used: the request was closed, or it took too long.',
  InvalidStateError: 'This device already holds a passkey of this account.',
  AbortError: 'The request was closed.',
  SecurityError: 'Passkeys do not work at this address.',
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Something went wrong.'
  return browserErrors[error.name] ?? error.message
}
