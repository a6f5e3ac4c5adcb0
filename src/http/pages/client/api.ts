/** Our own API, as the page asks it: JSON both ways, and a refusal as an error that says what to do. */

/** An answer's members. */
export type Answer = Readonly<Record<string, unknown>>

/** Asks. @throws Error whose message is for the person and whose cause is the problem's code. */
export async function ask(method: 'GET' | 'POST' | 'DELETE', path: string, body?: Answer): Promise<Answer> {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const read: unknown = await response.json()
  const answer: Answer = isObject(read) ? read : {}
  if (response.ok) return answer
  const detail = textOf(answer, 'detail') || 'The gateway refused this.'
  throw new Error(`${detail}${response.status === 429 ? ` Try again in ${waitOf(response)} seconds.` : ''}`, {
    cause: textOf(answer, 'code'),
  })
}

function waitOf(response: Response): string {
  return response.headers.get('Retry-After') ?? 'some'
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
