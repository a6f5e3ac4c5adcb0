/** The live events of a gateway for commands, with a note of when the connection opens and breaks. */
import { Bursar, type BursarOptions, type Event } from '../client/index.ts'

export interface StreamOptions {
  readonly types: readonly string[]
  readonly signal: AbortSignal
  /** Called each time the gateway has accepted the stream: events from then on are heard. */
  readonly onOpen: () => void
}

/** @throws BursarProblem when the gateway refuses. */
export function streamEvents(
  credential: Pick<BursarOptions, 'url' | 'session' | 'agentKey'>,
  { types, signal, onOpen }: StreamOptions,
): AsyncIterable<Event> {
  const fetchAndObserve: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (response.ok) onOpen()
    return response
  }
  return new Bursar({ ...credential, fetch: fetchAndObserve }).listen({ types, signal })
}
