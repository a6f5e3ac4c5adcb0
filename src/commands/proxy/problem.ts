/** Answers that the proxy gives by itself. */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { timers } from '../../core/base/timers.ts'

/** Field that says why a 402 was not paid, or why there is no answer. */
export const PROBLEM_FIELD = 'Bursar-Problem'
const MAX_CODE_LENGTH = 64
/** Time for the other side of a refused connection to read why, and to close. */
const LINGER_MS = 2_000

export interface Problem {
  readonly code: string
  readonly detail: string
  readonly hint: string
  readonly [member: string]: unknown
}

/** A code as a field value: codes come from the gateway, too. */
export function toFieldValue(code: string): string {
  return code.replaceAll(/[^\w.-]/g, '_').slice(0, MAX_CODE_LENGTH)
}

/** Answers with a problem (RFC 9457), and the connection stays usable. */
export function answerProblem(
  response: ServerResponse,
  status: number,
  problem: Problem,
  fields: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent) return void response.destroy()
  const body = writeProblem(status, problem)
  // The reason of an answer that could not be passed on stays in the response otherwise, and fails again.
  response.writeHead(status, STATUS_CODES[status] ?? '', {
    'Content-Type': 'application/problem+json',
    'Content-Length': body.length,
    [PROBLEM_FIELD]: toFieldValue(problem.code),
    ...fields,
  })
  response.end(body)
}

/**
 * The same, for a connection that is no longer read as HTTP. It ends, whatever the other side does: anybody on this machine can
 * open one, reset it or keep it.
 */
export function refuseConnection(
  socket: Socket,
  status: string,
  problem: Problem,
  fields: Readonly<Record<string, string>> = {},
): void {
  socket.on('error', () => socket.destroy())
  const cancel = timers.after(LINGER_MS, () => socket.destroy(), { isIdle: true })
  socket.once('close', cancel)
  socket.end(writeRawProblem(status, problem, fields))
  // What is left unread would make the end a reset, and the answer be lost.
  socket.resume()
}

function writeRawProblem(status: string, problem: Problem, fields: Readonly<Record<string, string>>): string {
  const body = writeProblem(Number(status.slice(0, 3)), problem)
  const head = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(body.length),
    [PROBLEM_FIELD]: toFieldValue(problem.code),
    Connection: 'close',
    ...fields,
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body.toString()}`
}

function writeProblem(status: number, problem: Problem): Buffer {
  return Buffer.from(`${JSON.stringify({ type: 'about:blank', status, ...problem })}\n`)
}
