/**
 * Sends the request of an operation's page: with the credential in the form, and operations of persons without one with
 * the reader's session, or that of a new guest.
 */
import { ask, isRefusal, readText } from './api.ts'
import { readAccount } from './session.ts'

export function startTrying(): void {
  const form = document.querySelector<HTMLFormElement>('#request')
  const box = document.querySelector<HTMLElement>('#response')
  const status = box?.querySelector('[role=status]')
  const text = box?.querySelector('pre')
  const button = form?.querySelector('button')
  if (form === null || box === null || !status || !text || !button) return
  const credential = form.querySelector<HTMLInputElement>('#credential')
  const filled =
    credential !== null && form.dataset.caller === 'account' ? fillDemoKey(credential) : Promise.resolve()
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    button.disabled = true
    void filled
      .then(() => send(form, credential))
      .then(
        (answer) => {
          status.textContent = answer.status
          text.textContent = answer.body
          box.dataset.kind = answer.isFine ? 'good' : 'bad'
        },
        (error: unknown) => {
          status.textContent = error instanceof Error ? error.message : 'The request could not be sent.'
          text.textContent = ''
          box.dataset.kind = 'bad'
        },
      )
      .finally(() => {
        box.hidden = false
        button.disabled = false
      })
  })
}

async function fillDemoKey(credential: HTMLInputElement): Promise<void> {
  try {
    const key = readText(await ask('GET', '/sandbox/credentials'), 'demoApiKey')
    if (credential.value === '') credential.value = key
  } catch {
    credential.placeholder = 'the demo key could not be read'
  }
}

interface Answer {
  readonly status: string
  readonly body: string
  readonly isFine: boolean
}

async function send(form: HTMLFormElement, credential: HTMLInputElement | null): Promise<Answer> {
  const isBySession = credential?.value === '' && form.dataset.caller === 'person'
  if (isBySession) await requireSession()
  const body = form.querySelector<HTMLTextAreaElement>('textarea')?.value ?? null
  if (body !== null) requireJson(body)
  const headers: Record<string, string> = {
    ...(credential === null || credential.value === ''
      ? {}
      : { Authorization: `Bearer ${credential.value}` }),
    ...(body === null ? {} : { 'Content-Type': 'application/json' }),
    ...(form.dataset.repeatable === undefined ? {} : { 'Idempotency-Key': newIdempotencyKey() }),
  }
  const startedAt = performance.now()
  const response = await fetch(buildTarget(form), {
    method: form.dataset.method ?? 'GET',
    headers,
    body,
    // Beside another credential a session is refused; operations that anyone may call must not replace it.
    credentials: isBySession ? 'same-origin' : 'omit',
  })
  const answer = await response.text()
  const ms = Math.round(performance.now() - startedAt)
  return {
    status: `${response.status} ${response.statusText} in ${ms} ms`,
    body: indentJson(answer),
    isFine: response.ok,
  }
}

/** Opens a guest's session unless the reader has one. Scripts cannot read either: the browser sends it as a cookie. */
async function requireSession(): Promise<void> {
  try {
    await readAccount()
  } catch (error) {
    if (!isRefusal(error, 'unauthenticated')) throw error
    await ask('POST', '/api/auth/guest', {})
  }
}

/** Path and query from the form. */
function buildTarget(form: HTMLFormElement): string {
  const inputs = [...form.querySelectorAll<HTMLInputElement>('input[data-in]')]
  const query = new URLSearchParams()
  let path = form.dataset.path ?? ''
  for (const { value, dataset } of inputs) {
    const name = dataset.name ?? ''
    if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value))
    else if (value !== '') query.set(name, value)
  }
  return query.size === 0 ? path : `${path}?${query}`
}

/** @throws Error if the text is no JSON. */
function requireJson(text: string): void {
  try {
    JSON.parse(text)
  } catch (cause) {
    throw new Error('The body is not JSON. Nothing was sent.', { cause })
  }
}

/** Not randomUUID, which browsers offer on secure origins only. */
function newIdempotencyKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

function indentJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
