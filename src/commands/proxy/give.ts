/** Gives a program the answer that was bought for it, and finds out whether it has got it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { finished, pipeline } from 'node:stream/promises'
import { timers } from '../../core/base/timers.ts'
import type { Bought } from './buy.ts'
import { type GatewayClient, toRecord } from './gateway.ts'
import type { HeldPurchase, PurchaseBook } from './open-purchases.ts'
import { answerProblem } from './problem.ts'

/** A program that was killed with an answer unread resets its connection at once. */
const LOST_MS = 2_000
const BODILESS = [204, 205, 304]
/** Framing is ours: the answer was stored without its coding. */
const FRAMING = /^(content-length|content-encoding|transfer-encoding|connection|keep-alive)$/

export interface Giving {
  readonly gateway: GatewayClient
  readonly book: PurchaseBook
}

/** Gives the answer. It stays open for the program's repeat unless all of it was taken. */
export async function giveBought(
  giving: Giving,
  { purchase, held, response }: { purchase: Bought; held: HeldPurchase; response: ServerResponse },
): Promise<void> {
  const { book } = giving
  const { socket } = response
  try {
    await writeAnswer(giving, purchase, response)
  } catch {
    response.destroy()
  }
  if (!response.writableFinished || socket === null || response.statusCode === 502) return book.release(held)
  book.give(held)
  if (await isLost(socket)) book.reopen(held)
  else book.close(held)
}

async function writeAnswer(
  { gateway }: Giving,
  { id, charged, asset, response: answer }: Bought,
  response: ServerResponse,
): Promise<void> {
  const status = typeof answer.status === 'number' ? answer.status : 200
  const fields = {
    ...readFields(answer),
    ...(id === null ? {} : { 'Bursar-Purchase': id, 'Bursar-Charged': `${charged} ${asset ?? ''}`.trim() }),
  }
  if (answer.truncated === true && id !== null) {
    const stream = await gateway.openStream(`/api/purchases/${id}/response`)
    // An answer that the gateway could not keep to its end would look whole.
    const isWhole = stream.statusCode === 200 && stream.headers['bursar-complete'] !== 'false'
    if (isWhole) return writeStream(response, { status, fields, stream })
    stream.destroy()
    answerProblem(response, 502, {
      code: 'answer_too_long',
      detail: 'The answer was paid and delivered, and is longer than the gateway gives.',
      hint: `The gateway has its first part: GET /api/purchases/${id}.`,
      purchaseId: id,
    })
    return finished(response)
  }
  const body = readBody(answer)
  const length = BODILESS.includes(status) ? {} : { 'Content-Length': body.length }
  response.writeHead(status, { ...fields, ...length })
  response.end(body)
  await finished(response)
}

function writeStream(
  response: ServerResponse,
  {
    status,
    fields,
    stream,
  }: { status: number; fields: Readonly<Record<string, string>>; stream: IncomingMessage },
): Promise<void> {
  const length = stream.headers['content-length']
  response.writeHead(status, { ...fields, ...(length === undefined ? {} : { 'Content-Length': length }) })
  return pipeline(stream, response)
}

function readFields({ headers, contentType }: Bought['response']): Readonly<Record<string, string>> {
  const fields = Object.fromEntries(
    Object.entries(toRecord(headers)).flatMap(([name, value]) =>
      typeof value === 'string' && !FRAMING.test(name) ? [[name, value]] : [],
    ),
  )
  return typeof contentType === 'string' ? { 'content-type': contentType, ...fields } : fields
}

function readBody({ body, bodyBase64 }: Bought['response']): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  return Buffer.from(typeof bodyBase64 === 'string' ? bodyBase64 : '', 'base64')
}

/** Waits a moment for the sign that nobody read an answer: the connection is reset. */
function isLost(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (lost: boolean) => {
      cancel()
      socket.off('error', lose).off('close', close)
      resolve(lost)
    }
    const lose = () => end(true)
    const keep = () => end(false)
    const close = (hadError: boolean) => end(hadError)
    const cancel = timers.after(LOST_MS, keep)
    socket.once('error', lose).once('close', close)
    if (socket.destroyed) close(socket.errored !== null)
  })
}
