/** Combines adapters: each channel is sent by the first that offers it. */
import { Failure } from '../../core/failures/failure.ts'
import type { Messages } from './port.ts'

/** The messages port over several adapters; without any, no channel is offered. */
export function joinMessages(adapters: readonly Messages[]): Messages {
  return {
    channels: [...new Set(adapters.flatMap(({ channels }) => channels))],
    send: async (message) => {
      const adapter = adapters.find(({ channels }) => channels.includes(message.channel))
      if (adapter === undefined)
        throw new Failure('provider_unavailable', `No provider is configured for ${message.channel}.`, {
          retryAfter: 60,
        })
      await adapter.send(message)
    },
  }
}
