/** Server-Sent Events from a response. @see https://html.spec.whatwg.org/multipage/server-sent-events.html */

/** @property data null: only the position is told, from which a broken stream goes on */
export interface StreamedEvent {
  readonly id: string
  readonly data: string | null
}

/** Ends when the response ends, or breaks. */
export async function* readEvents(response: Response): AsyncGenerator<StreamedEvent> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const value = await reader.read().then(
        (read) => read.value,
        () => undefined,
      )
      if (value === undefined) return
      const blocks = (rest + value).split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = parse(block)
        if (event !== null) yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** Null for a comment, which only keeps the connection open. */
function parse(block: string): StreamedEvent | null {
  const fields = block.split(/\r?\n/).map((line) => /^(id|data): ?(.*)$/.exec(line))
  const of = (name: string) => fields.filter((field) => field?.[1] === name).map((field) => field?.[2] ?? '')
  const [id, data] = [of('id').at(-1), of('data')]
  if (id === undefined && data.length === 0) return null
  return { id: id ?? '', data: data.length === 0 ? null : data.join('\n') }
}
