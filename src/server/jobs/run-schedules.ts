/** Makes scheduled calls at their due times, and goes on with those that a crash or a slow provider left. */
import type { Services } from '../../kernel/context.ts'
import { findAccount, findIssuedKey } from '../../people/identity/store.ts'

/** Runs one round. @param signal stops it early. */
export function runSchedules(services: Services, signal: AbortSignal): Promise<number> {
  return services.scheduling.runDue(services, { findKey: findIssuedKey, findAccount }, signal)
}
