import { z } from 'zod'
import type { Services } from '../../src/kernel/context.ts'
import { run } from '../../src/kernel/run.ts'
import guest from '../../tools/auth/guest.ts'
import { buildCall } from '../kernel/scene.ts'
import { type SignedIn, signInAgain } from '../people/identity/signed-in.ts'

/** A guest with demo money, signed in. */
export async function newGuest(services: Services): Promise<SignedIn> {
  const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
  const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
  return signInAgain(services, account.id)
}
