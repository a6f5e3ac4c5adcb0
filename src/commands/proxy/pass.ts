/**
 * Passes a program's request to its origin, and the answer back, both as they come. Only a 402 is looked at: where the gateway
 * can pay for it, the program gets what was bought.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { rootCause } from '../../core/failures/root-cause.ts'
import type { Buy, Outcome } from './buy.ts'
import { readChallenge } from './challenge.ts'
import { dropHopByHop, readPairs } from './fields.ts'
import { type Giving, giveBought } from './give.ts'
import type { Outgoing } from './outgoing.ts'
import { countPassed, countRequest } from './passed-bytes.ts'
import { answerProblem, PROBLEM_FIELD, type Problem, toFieldValue } from './problem.ts'
import { type Spool, type SpoolSpace, spoolBody } from './spool.ts'
import { describeRefusal, type Target, TargetRefused, writeAuthority } from './target.ts'
import { readWanted } from './wanted.ts'

export interface PassParts extends Giving {
  readonly outgoing: Outgoing
  readonly buy: Buy
  readonly space: SpoolSpace
  /** Reports a purchase, or why there was none. */
  readonly report: (line: string) => void
}

export interface PassedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  /** Path and query. */
  readonly path: string
  /** The program named the target in the request itself, which outranks its Host field. */
  readonly isAbsolute: boolean
}

/** Methods that may be sent again where a kept connection ended before an answer. */
const REPEATABLE = ['GET', 'HEAD', 'OPTIONS', 'TRACE']

export async function passRequest(parts: PassParts, passed: PassedRequest): Promise<void> {
  const { request, response } = passed
  response.sendDate = false
  countRequest()
  try {
    const { answer, spool, sending } = await askOrigin(parts, passed)
    if (answer.statusCode === 402) await passChallenge(parts, passed, { answer, spool, sending })
    else {
      spool?.drop()
      await passAnswer(response, answer, [])
    }
  } catch (error) {
    if (response.destroyed || response.headersSent) return void response.destroy()
    request.resume()
    const { status, problem } = describeFailure(error)
    answerProblem(response, status, problem)
  }
}

interface Asked {
  readonly answer: IncomingMessage
  /** Null for a request without a body. */
  readonly spool: Spool | null
  readonly sending: ClientRequest
}

async function askOrigin(parts: PassParts, passed: PassedRequest): Promise<Asked> {
  const { request } = passed
  const hasBody =
    Number(request.headers['content-length'] ?? 0) > 0 || request.headers['transfer-encoding'] !== undefined
  for (let isRepeat = false; ; isRepeat = true) {
    const sending = startRequest(parts, passed, hasBody)
    const spool = hasBody ? spoolBody(request, sending, parts.space) : null
    if (spool === null) sending.end()
    try {
      const answer = await awaitAnswer(sending, passed.response, spool)
      return { answer, spool, sending }
    } catch (error) {
      spool?.drop()
      const mayRepeat = sending.reusedSocket && !hasBody && REPEATABLE.includes(request.method ?? '')
      if (isRepeat || !mayRepeat || passed.response.destroyed) throw error
    }
  }
}

function startRequest(
  { outgoing }: PassParts,
  { request, target, path, isAbsolute }: PassedRequest,
  hasBody: boolean,
): ClientRequest {
  return outgoing.request(target, {
    method: request.method ?? 'GET',
    path,
    fields: chooseHost(dropHopByHop(request.rawHeaders), { target, isAbsolute }),
    isChunked: hasBody && request.headers['content-length'] === undefined,
  })
}

/** The fields with one Host: a target in the request itself outranks the program's own. */
export function chooseHost(
  fields: readonly string[],
  { target, isAbsolute }: Pick<PassedRequest, 'target' | 'isAbsolute'>,
): readonly string[] {
  const pairs = readPairs(fields)
  const isHost = (name: string) => name.toLowerCase() === 'host'
  if (!isAbsolute && pairs.some(([name]) => isHost(name))) return fields
  return ['Host', writeAuthority(target), ...pairs.filter(([name]) => !isHost(name)).flat()]
}

function awaitAnswer(
  sending: ClientRequest,
  response: ServerResponse,
  spool: Spool | null,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let answered = false
    // The program has gone, or has an answer that came before its request was read: an origin may never read the rest.
    response.once('close', () => {
      if (!response.writableFinished || !sending.writableFinished) sending.destroy()
      spool?.drop()
    })
    sending.once('response', (answer) => {
      answered = true
      resolve(answer)
    })
    // An origin may answer and close before it has read the body.
    sending.on('error', (error) => {
      if (!answered) reject(error)
    })
    sending.once('close', () => {
      spool?.stopSending()
      if (!answered) reject(new Error('the origin closed the connection without an answer'))
    })
  })
}

async function passAnswer(
  response: ServerResponse,
  answer: IncomingMessage,
  more: readonly string[],
  head: readonly Buffer[] = [],
): Promise<void> {
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', [
    ...dropHopByHop(answer.rawHeaders),
    ...more,
  ])
  response.flushHeaders()
  for (const chunk of head) response.write(chunk)
  // A pipeline would wait for the end of a body that was read before.
  if (answer.readableEnded) return void response.end()
  countPassed(answer)
  await pipeline(answer, response)
}

async function passChallenge(
  parts: PassParts,
  passed: PassedRequest,
  { answer, spool, sending }: Asked,
): Promise<void> {
  const { response, request } = passed
  // The origin answered without the body, and may never read it.
  spool?.stopSending()
  const challenge = await readChallenge(answer)
  const outcome: Outcome = challenge.isPayable
    ? await buyAnswer(parts, passed, spool)
    : { status: 'unpaid', code: 'terms_not_payable' }
  spool?.drop()
  const name = `${request.method} ${writeAuthority(passed.target)}${passed.path.split('?')[0]}`
  switch (outcome.status) {
    case 'unpaid':
      if (challenge.isPayable) parts.report(`not bought (${outcome.code}): ${name}`)
      return passAnswer(response, answer, [PROBLEM_FIELD, toFieldValue(outcome.code)], challenge.head)
    case 'missing':
      sending.destroy()
      parts.report(`no answer (${outcome.problem.code}): ${name}`)
      return answerProblem(response, 502, outcome.problem, { 'Retry-After': '2' })
    case 'bought': {
      sending.destroy()
      const { purchase, held } = outcome
      parts.report(`bought for ${purchase.charged} ${purchase.asset ?? ''}: ${name} ${purchase.id ?? ''}`)
      return giveBought(parts, { purchase, held, response })
    }
  }
}

async function buyAnswer(
  { buy }: PassParts,
  { request, response, target, path, isAbsolute }: PassedRequest,
  spool: Spool | null,
): Promise<Outcome> {
  const spooled = spool === null ? { body: null } : await spool.readWhole()
  if ('problem' in spooled) return { status: 'unpaid', code: spooled.problem }
  const wanted = readWanted(request, { target, path, isAbsolute, body: spooled.body })
  if ('problem' in wanted) return { status: 'unpaid', code: wanted.problem }
  const isGone = () => response.destroyed
  const gone = new Promise<null>((resolve) => {
    if (isGone()) resolve(null)
    else response.once('close', () => resolve(null))
  })
  return buy(wanted, { isGone, gone })
}

/** @returns status and problem of a request that got no answer. */
export function describeFailure(error: unknown): { readonly status: 403 | 502; readonly problem: Problem } {
  return error instanceof TargetRefused
    ? { status: 403, problem: describeRefusal(error) }
    : { status: 502, problem: describeLoss(error) }
}

function describeLoss(error: unknown): Problem {
  const isUntrusted =
    error instanceof Error && 'code' in error && /CERT|SIGNATURE|ISSUER/.test(String(error.code))
  return {
    code: isUntrusted ? 'origin_untrusted' : 'origin_unreachable',
    detail: `The origin did not answer: ${rootCause(error)}.`,
    hint: isUntrusted ? 'Name its certificate authority with --ca.' : 'Nothing was paid. Try again later.',
  }
}
