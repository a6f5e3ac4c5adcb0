import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  collectDeviceSession,
  readDeviceSignIn,
} from '../../../src/people/identity/devices/device-sign-ins.ts'
import { collectSession, sessionAnswer } from '../../../src/people/identity/sessions/session-answer.ts'

export default defineTool({
  name: 'auth.devices.outcome',
  title: 'Outcome of a program’s sign-in',
  summary: 'Read whether the person has signed the program in, and collect its session once.',
  description:
    'Poll it while `pending`. The session is handed out once, to the program that started the sign-in, which is decided within ten minutes.',
  route: 'POST /api/auth/devices/{code}/outcome',
  who: 'public',
  effect: 'write',
  proof: 'none',
  opensSession: true,
  input: z.strictObject({
    code: z.string().max(64).describe('Code of the sign-in.'),
    secret: z.string().max(64).describe('Secret from the start of the sign-in.'),
  }),
  output: z.strictObject({
    status: z
      .enum(['pending', 'rejected', 'collected', 'expired'])
      .describe(
        '`pending` until the person decides; `collected`: allowed, and the session is or was handed over; `expired` after ten minutes, or two minutes after the permission.',
      ),
    session: sessionAnswer
      .nullable()
      .describe('The session, in the first answer with `collected` only; its token lasts as long as it.'),
  }),
  failures: ['not_found', 'account_locked'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A', secret: 'x'.repeat(43) },
  run: async (context, { code, secret }) => {
    const { database, now } = context
    const { status } = await readDeviceSignIn(database, { code, secret, now })
    if (status !== 'allowed') return { status, session: null }
    const sessionId = await collectDeviceSession(database, { code, now })
    if (sessionId === undefined) return { status: 'collected' as const, session: null }
    const session = await collectSession(context, { sessionId, at: now })
    // It was ended since: by its person, a recovery or a lock.
    if (session === null) return { status: 'expired' as const, session: null }
    return { status: 'collected' as const, session }
  },
})
