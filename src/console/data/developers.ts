/** API keys, webhooks and events: what programs of the owner use. */
import type { Event } from '../../client/operations.ts'
import { bursar } from './gateway.ts'
import { resource, resourceById } from './resource.ts'

export const apiKeys = resource(() => bursar.developer.keys.list({ limit: 100 }), ['key.'])
export const webhooks = resource(() => bursar.webhookEndpoints.list(), ['webhook.'])
/** Every event may become a delivery. An endpoint that was deleted meanwhile has none. */
export const deliveriesByEndpoint = resourceById(
  async (id) => {
    const { value } = { value: undefined, ...webhooks.state.peek() }
    const isGone = value !== undefined && !value.endpoints.some((one) => one.id === id)
    return isGone ? { deliveries: [] } : bursar.webhookEndpoints.deliveries.list({ id, limit: 10 })
  },
  [''],
)

const SHOWN = 12
/** Events are listed from the oldest: an account with more than this shows only what happens from now on. */
const MAX_READ = 500

/** The newest events, newest first. */
export const recentEvents = resource(async () => {
  const read: Event[] = []
  for await (const event of bursar.events.list({ limit: 100 })) {
    read.push(event)
    if (read.length > MAX_READ) return []
  }
  return read.slice(-SHOWN).reverse()
})

/** Adds an event of the stream in front. */
export function addEvent(event: Event): void {
  const { value } = { value: undefined, ...recentEvents.state.peek() }
  if (value === undefined || value.some(({ id }) => id === event.id)) return
  recentEvents.put([event, ...value].slice(0, SHOWN))
}
