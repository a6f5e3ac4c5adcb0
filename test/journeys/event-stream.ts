/** A client of Server-Sent Events over real HTTP. */
import { z } from 'zod'

export const eventShape = z.looseObject({
  id: z.string(),
  sequence: z.int(),
  type: z.string(),
  accountId: z.string(),
  agentId: z.string().nullable(),
  object: z.object({ kind: z.string(), id: z.string() }),
  data: z.record(z.string(), z.unknown()),
})
export type SentEvent = z.output<typeof eventShape>

export interface OpenStream {
  readonly response: Response
  readonly events: SentEvent[]
  readonly lastEventId: () => string
  /** Settles once the server has ended the stream, or the client has closed it. */
  readonly ended: Promise<void>
  close(): void
}

/** Opens a stream. */
export async function openStream(
  url: string,
  token: string,
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  const closing = new AbortController()
  const response = await fetch(url, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${token}`, ...headers },
    signal: closing.signal,
  })
  const events: SentEvent[] = []
  let lastEventId = ''
  const read = async () => {
    if (response.body === null || !response.ok) return
    let text = ''
    const decoder = new TextDecoder()
    for await (const part of response.body) {
      text += decoder.decode(part, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const members = new Map(
          block.split('\n').map((line): [string, string] => {
            const [name = '', ...value] = line.split(': ')
            return [name, value.join(': ')]
          }),
        )
        lastEventId = members.get('id') ?? lastEventId
        const data = members.get('data')
        if (data === undefined) continue
        const event = eventShape.parse(JSON.parse(data))
        if (members.get('event') !== event.type || members.get('id') !== event.id)
          throw new Error('the fields of a block differ from its event')
        events.push(event)
      }
    }
  }
  return {
    response,
    events,
    lastEventId: () => lastEventId,
    ended: read().catch((error: unknown) => {
      if (!closing.signal.aborted) throw error
    }),
    close: () => closing.abort(),
  }
}
