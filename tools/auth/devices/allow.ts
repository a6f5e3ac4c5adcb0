import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideDeviceSignIn, readDeviceSignIn } from '../../../src/people/identity/devices/device-sign-ins.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { openDeviceSession } from '../../../src/people/identity/sessions/sessions.ts'

export default defineTool({
  name: 'auth.devices.allow',
  title: 'Allow a program',
  summary: 'Sign in the program that asks, with a session of its own that lasts up to 12 hours.',
  description:
    'The session is among GET /api/auth/sessions, with the method `device`, and can be ended there. A session that was made this way cannot allow others.',
  route: 'POST /api/auth/devices/{code}/allow',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'recent',
  rate: 'authorizations',
  input: z.strictObject({ code: z.string().max(64).describe('Code of the sign-in.') }),
  output: z.strictObject({
    status: z.literal('allowed').describe('The decision.'),
    sessionId: z.string().describe('Session of the program: `sess_…`'),
  }),
  failures: ['not_found', 'conflict', 'rate_limited'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A' },
  run: async (context, { code }) => {
    const { database, now } = context
    const { person, session } = requirePerson(context)
    // A stolen token of a program must not live on in sessions that it makes.
    if (session.isDevice)
      throw new Failure('conflict', 'A program’s session cannot sign in other programs.', {
        hint: 'Open the page in a browser, and sign in there.',
      })
    const { name } = await readDeviceSignIn(database, { code, now })
    const sessionId = await openDeviceSession(context, { accountId: person.id, name, at: now })
    await decideDeviceSignIn(database, { code, sessionId, now })
    await sendSecurityNotice(context, { accountId: person.id, notice: 'device_allowed', at: now })
    await recordChange(context, { action: 'device.allowed', object: { kind: 'session', id: sessionId } })
    return { status: 'allowed' as const, sessionId }
  },
})
