/** The page's elements: found by id, said to be busy, and the one line that tells how things go. */

/** An element that the page may lack. */
export function find<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind | null {
  const element = document.getElementById(id)
  return element instanceof kind ? element : null
}

/** Shows an element, or hides it. */
export function show(id: string, isShown: boolean): void {
  find(id, HTMLElement)?.toggleAttribute('hidden', !isShown)
}

/** Says how things go; screen readers say it too. */
export function tell(text: string, kind: 'news' | 'error' = 'news'): void {
  const status = find('status', HTMLElement)
  if (status === null) return
  status.dataset.kind = kind
  status.textContent = text
  status.scrollIntoView({ block: 'nearest' })
}

/** What a form's field holds. */
export function fieldOf(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** What a refused attempt was, to be made again once a second factor was shown. */
let refused: (() => Promise<void>) | null = null

/** Does the work of a form when it is submitted. */
export function onSubmit(form: HTMLFormElement | null, work: (form: HTMLFormElement) => Promise<void>): void {
  form?.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => work(form))
  })
}

/** Tries something while nothing else can be started, and tells how it went. */
export async function attempt(work: () => Promise<void>): Promise<void> {
  const enabled = [...document.querySelectorAll('button')].filter((button) => !button.disabled)
  for (const button of enabled) button.disabled = true
  tell('One moment…')
  try {
    await work()
  } catch (error) {
    tell(messageOf(error), 'error')
    if (error instanceof Error && error.cause === 'step_up_required') askForSecondFactor(work)
  } finally {
    for (const button of enabled) button.disabled = false
  }
}

/** Makes the attempt again that a second factor was missing for. */
export async function resume(): Promise<void> {
  const work = refused
  refused = null
  show('step-up', false)
  await work?.()
}

function askForSecondFactor(work: () => Promise<void>): void {
  refused = work
  show('step-up', true)
  find('step-up-code', HTMLInputElement)?.focus()
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
