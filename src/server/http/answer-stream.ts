/** The answers of sellers as bytes. The client's reading sets the pace: one part is in memory. */
import { accepts } from 'hono/accepts'
import type { Principal } from '../../core/base/principal.ts'
import { requireCaller, type Services } from '../../kernel/context.ts'
import type { Tool } from '../../kernel/tool.ts'
import { readAnswerBody, readOwnAnswer } from '../../rails/buying/read-answer.ts'
import type { HttpContext } from './request.ts'

const BYTES = 'application/octet-stream'

/** True if the tool describes bytes and the client prefers them. */
export function wantsBytes(c: HttpContext, tool: Tool): boolean {
  if (tool.download !== true) return false
  c.header('Vary', 'Accept')
  const supports = ['application/json', BYTES]
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === BYTES
}

/** Opens the body of an answer for a call that has passed the gates. @throws Failure `not_found`. */
export async function openAnswerStream(
  { database, settings, log }: Pick<Services, 'database' | 'settings' | 'log'>,
  { principal, id, isHead }: { principal: Principal; id: string; isHead: boolean },
): Promise<Response> {
  const parts = { database, dataKey: settings.dataKey }
  const answer = await readOwnAnswer(parts, requireCaller({ principal }), id)
  const { hash, stored, view } = answer
  // An answer that was cut off before answers had parts is as long as its view.
  const length = stored === null ? undefined : view.bytes
  const headers = {
    'Content-Type': BYTES,
    Vary: 'Accept',
    // Never a page of the gateway's origin.
    'Content-Disposition': 'attachment',
    ...(length === undefined ? {} : { 'Content-Length': String(length) }),
    ...(hash === null
      ? {}
      : { 'Content-Digest': `sha-256=:${Buffer.from(hash, 'hex').toString('base64')}:` }),
    'Bursar-Complete': String(view.complete),
  }
  if (isHead) return new Response(null, { headers })
  const bytes = readAnswerBody(parts, id, answer)
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await bytes.next()
          if (done === true) controller.close()
          else controller.enqueue(value)
        } catch (err) {
          log.warn({ err, purchaseId: id }, 'the answer to a purchase cannot be read')
          controller.error(err)
        }
      },
      cancel: async () => void (await bytes.return(undefined)),
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers })
}
