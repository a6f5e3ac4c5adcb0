/** API client of the pages: JSON requests, and failures as errors with user-facing messages. */

export type Answer = Readonly<Record<string, unknown>>

/** Sends a request. @throws Error with a user-facing message; its cause is the problem's code, if there is one. */
export async function ask(method: 'GET' | 'POST' | 'DELETE', path: string, body?: Answer): Promise<Answer> {
  const response = await send(path, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const answer = await read(response)
  if (response.ok) return answer
  throw new Error(messageFor(answer, response), { cause: readText(answer, 'code') })
}

/** Replaces the browser's technical error message. */
async function send(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(path, request)
  } catch (cause) {
    throw new Error('Bursar cannot be reached. Check your connection, then try again.', { cause })
  }
}

/** A proxy responds with its own page while the gateway is down. */
async function read(response: Response): Promise<Answer> {
  const answer: unknown = await response.json().catch(() => null)
  if (isObject(answer)) return answer
  throw new Error(
    `Bursar returned an unexpected response (status ${response.status}). Try again in a moment.`,
  )
}

/** Combines detail and hint. Hints that name routes or members are for API clients and are left out. */
function messageFor(answer: Answer, response: Response): string {
  const detail = sentence(readText(answer, 'detail') || 'The gateway rejected this request')
  const hint = readText(answer, 'hint')
  const isForPrograms = /\b(GET|POST|PATCH|DELETE) \/|Authorization|Idempotency-Key|"issues"/.test(hint)
  const wait = response.status === 429 ? `Try again in ${readWait(response)} seconds.` : ''
  return [detail, isForPrograms ? '' : sentence(hint), wait].filter((words) => words !== '').join(' ')
}

function sentence(words: string): string {
  return words === '' || /[.!?]$/.test(words) ? words : `${words}.`
}

function readWait(response: Response): string {
  return response.headers.get('Retry-After') ?? 'some'
}

/** True if the error is an API failure with this code. */
export function isRefusal(error: unknown, code: string): error is Error {
  return error instanceof Error && error.cause === code
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a string member, or an empty string. */
export function readText(answer: Answer, name: string): string {
  const value = answer[name]
  return typeof value === 'string' ? value : ''
}
