import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideDeviceSignIn } from '../../../src/people/identity/devices/device-sign-ins.ts'

export default defineTool({
  name: 'auth.devices.reject',
  title: 'Reject a program',
  summary: 'Reject a program’s request to be signed in. The program must start again.',
  description: 'For the signed-in person who was shown the code. The program gets no session.',
  route: 'POST /api/auth/devices/{code}/reject',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({ code: z.string().max(64).describe('Code of the sign-in.') }),
  output: z.strictObject({ status: z.literal('rejected').describe('The decision.') }),
  failures: ['not_found', 'conflict', 'rate_limited'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A' },
  run: async ({ database, now }, { code }) => {
    await decideDeviceSignIn(database, { code, sessionId: null, now })
    return { status: 'rejected' as const }
  },
})
