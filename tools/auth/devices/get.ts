import { z } from 'zod'
import { untrustedText } from '../../../src/core/base/untrusted-text.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readDeviceSignIn } from '../../../src/people/identity/devices/device-sign-ins.ts'
import { toUserCode } from '../../../src/people/identity/user-code.ts'

export default defineTool({
  name: 'auth.devices.get',
  title: 'Program that asks to be signed in',
  summary: 'Read a program’s request to be signed in, by the code in the address of its page.',
  description:
    'Whoever allows it gives the program a session of their own account, so compare `userCode` with what the program shows.',
  route: 'GET /api/auth/devices/{code}',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'read',
  rate: 'authorizations',
  input: z.strictObject({ code: z.string().max(64).describe('Code of the sign-in.') }),
  output: z.strictObject({
    status: z
      .enum(['pending', 'allowed', 'rejected', 'collected', 'expired'])
      .describe(
        'Only a `pending` sign-in can be allowed or rejected; `collected`: the program has its session.',
      ),
    userCode: z.string().describe('Short code that the program shows too, such as `BCDF-GHJK`.'),
    name: untrustedText('Name that the program gave itself.'),
    address: z.string().describe('Network address that the request came from.'),
    createdAt: z.string().describe('ISO 8601 UTC.'),
    expiresAt: z.string().describe('Until when it can be decided, ISO 8601 UTC.'),
  }),
  failures: ['not_found', 'rate_limited'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A' },
  run: async ({ database, now }, { code }) => {
    const { status, name, address, createdAt, expiresAt } = await readDeviceSignIn(database, { code, now })
    return {
      status,
      userCode: toUserCode(code),
      name,
      address,
      createdAt: createdAt.toISOString(),
      expiresAt: expiresAt.toISOString(),
    }
  },
})
