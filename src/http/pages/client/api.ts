/** Our own API, as the page asks it: JSON both ways, and a refusal as an error that says what to do. */

/** An answer's members. */
export type Answer = Readonly<Record<string, unknown>>

/** Asks. @throws Error whose message is for the person and whose cause is the problem's code, where there is one. */
export async function ask(method: 'GET' | 'POST' | 'DELETE', path: string, body?: Answer): Promise<Answer> {
  const response = await send(path, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const answer = await read(response)
  if (response.ok) return answer
  throw new Error(wordsOf(answer, response), { cause: textOf(answer, 'code') })
}

/** The browser's own words for a failed request are for programmers. */
async function send(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(path, request)
  } catch (cause) {
    throw new Error('Bursar cannot be reached. Check your connection, then try again.', { cause })
  }
}

/** A proxy on the way answers with a page of its own when the gateway is away. */
async function read(response: Response): Promise<Answer> {
  const answer: unknown = await response.json().catch(() => null)
  if (isObject(answer)) return answer
  throw new Error(`Bursar is not answering properly (status ${response.status}). Try again in a moment.`)
}

/** What happened and what to do. Hints that name routes and members are for programs. */
function wordsOf(answer: Answer, response: Response): string {
  const detail = sentence(textOf(answer, 'detail') || 'The gateway refused this')
  const hint = textOf(answer, 'hint')
  const isForPrograms = /\b(GET|POST|PATCH|DELETE) \/|Authorization|Idempotency-Key|"issues"/.test(hint)
  const wait = response.status === 429 ? `Try again in ${waitOf(response)} seconds.` : ''
  return [detail, isForPrograms ? '' : sentence(hint), wait].filter((words) => words !== '').join(' ')
}

function sentence(words: string): string {
  return words === '' || /[.!?]$/.test(words) ? words : `${words}.`
}

function waitOf(response: Response): string {
  return response.headers.get('Retry-After') ?? 'some'
}

/** Whether an error is the API's refusal with this code. */
export function isRefusal(error: unknown, code: string): error is Error {
  return error instanceof Error && error.cause === code
}

/** Whether a value has members. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text member of an answer; empty where there is none. */
export function textOf(answer: Answer, name: string): string {
  const value = answer[name]
  return typeof value === 'string' ? value : ''
}

/** The items of a list in an answer. */
export function itemsOf(answer: Answer, name: string): readonly Answer[] {
  const value = answer[name]
  return Array.isArray(value) ? value.filter(isObject) : []
}
