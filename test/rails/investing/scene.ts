/** An investing account, on the sandbox's own market with a settable clock. */

import { z } from 'zod'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { createSandboxBroker } from '../../../src/providers/broker/sandbox.ts'
import type { Feed } from '../../../src/providers/broker/sandbox-feed.ts'
import type { MarketHours } from '../../../src/providers/broker/sandbox-sessions.ts'
import type { Database } from '../../../src/storage/database.ts'
import guest from '../../../tools/auth/guest.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'

/** A clock that stands still until it is moved. */
export interface MovedClock {
  (): Date
  forward(milliseconds: number): void
}

/** @param from where it starts. */
export function movedClock(from = noon): MovedClock {
  let now = from.getTime()
  return Object.assign(() => new Date(now), {
    forward: (milliseconds: number) => {
      now += milliseconds
    },
  })
}

/** Services with a market of their own. @param feed the prices; by default the sandbox's. */
export function servicesWithMarket(
  database: Database,
  { clock, feed, hours = 'always' }: { clock: () => Date; feed?: Feed; hours?: MarketHours },
): Promise<Services> {
  const broker = createSandboxBroker({ database, clock, hours, ...(feed === undefined ? {} : { feed }) })
  return servicesOn(database, { clock, broker })
}

/** A new guest: 500 USD and a few shares. */
export async function newInvestor(services: Services): Promise<SignedIn> {
  const { body } = await run(guest, buildCall(services, { kind: 'public' }, { now: services.clock() }), {})
  const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
  return signInAgain(services, account.id, services.clock())
}
