/**
 * Sends the request of an operation's page, with the sandbox's demo key or a guest's session. The reader's own cookie is
 * neither sent nor replaced.
 */
import { isObject, textOf } from './api.ts'

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
    const key = await readMember('GET', '/sandbox/credentials', 'demoApiKey')
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
  if (credential !== null && credential.value === '' && form.dataset.caller === 'person')
    credential.value = await readMember('POST', '/api/auth/guest', 'sessionToken')
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
  const response = await fetch(targetOf(form), {
    method: form.dataset.method ?? 'GET',
    headers,
    body,
    credentials: 'omit',
  })
  const answer = await response.text()
  const ms = Math.round(performance.now() - startedAt)
  return {
    status: `${response.status} ${response.statusText} in ${ms} ms`,
    body: indented(answer),
    isFine: response.ok,
  }
}

/** Path and query from the form. */
function targetOf(form: HTMLFormElement): string {
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

async function readMember(method: string, path: string, name: string): Promise<string> {
  const response = await fetch(path, { method, credentials: 'omit' })
  const answer: unknown = await response.json()
  const value = isObject(answer) ? textOf(answer, name) : ''
  if (value === '') throw new Error(`${method} ${path} returned no ${name}.`)
  return value
}

/** Not randomUUID, which browsers offer on secure origins only. */
function newIdempotencyKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
