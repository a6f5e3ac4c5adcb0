/** Matches what arrived to the requests for money that it pays, and notes the requests that have expired. */
import type { Services } from '../../kernel/context.ts'
import { matchArrivals } from '../../records/requests/match.ts'
import { expireRequests } from '../../records/requests/store.ts'

/** Runs one round. @param signal stops it early. */
export async function matchRequests(services: Services, signal: AbortSignal): Promise<number> {
  const { clock, database, onCalendar } = services
  const at = clock()
  const matched = await matchArrivals(services, { at, signal })
  return matched + (await expireRequests(database, { now: onCalendar(at), at }))
}
