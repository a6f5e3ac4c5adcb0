import { z } from 'zod'
import { visibleText } from '../../../src/core/base/untrusted-text.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { openDeviceSignIn } from '../../../src/people/identity/devices/device-sign-ins.ts'
import { toUserCode } from '../../../src/people/identity/user-code.ts'

export default defineTool({
  name: 'auth.devices.start',
  title: 'Sign in a program',
  summary: 'Ask a person to sign in the calling program, on a page in the person’s browser.',
  description:
    '"bursar login" does all of it. Show `deviceUrl` and `userCode` to the person, then send `secret` to POST /api/auth/devices/{code}/outcome every `intervalSeconds` until it is decided. The code grants nothing.',
  route: 'POST /api/auth/devices',
  who: 'public',
  effect: 'write',
  proof: 'none',
  rate: 'devices',
  input: z.strictObject({
    name: z
      .string()
      .max(60)
      .transform(visibleText)
      .refine((text) => text !== '', 'must have visible text')
      .describe('Name of the program, shown to the person and in the list of sessions.'),
  }),
  output: z.strictObject({
    code: z.string().describe('Code of the sign-in.'),
    userCode: z.string().describe('Short code that the person compares with the page, such as `BCDF-GHJK`.'),
    deviceUrl: z.string().describe('Page where the person decides.'),
    secret: z.string().describe('Secret with which only the program can ask for the outcome.'),
    intervalSeconds: z.int().describe('Seconds between questions for the outcome.'),
    expiresAt: z.string().describe('Until when the person can decide, ISO 8601 UTC.'),
  }),
  failures: ['rate_limited'],
  example: { name: 'Command line' },
  run: async ({ database, settings, clientAddress: address = 'unknown', now: at }, { name }) => {
    const {
      origin,
      webOrigins: [site = origin],
    } = settings
    const { code, secret, expiresAt } = await openDeviceSignIn(database, { name, address, at })
    return {
      code,
      userCode: toUserCode(code),
      deviceUrl: `${site}/devices/${code}`,
      secret,
      intervalSeconds: 2,
      expiresAt: expiresAt.toISOString(),
    }
  },
})
