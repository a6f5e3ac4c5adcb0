import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideRegistration, readRegistration } from '../../../src/people/identity/keys/registrations.ts'

export default defineTool({
  name: 'agents.registrations.reject',
  title: 'Reject an agent',
  summary: 'Reject an agent’s request to be registered. The agent must start again.',
  description: 'For the signed-in person who was shown the code. Nothing is registered.',
  route: 'POST /api/agents/registrations/{code}/reject',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({ code: z.string().max(64).describe('Code of the registration.') }),
  output: z.strictObject({ status: z.literal('rejected').describe('The decision.') }),
  failures: ['not_found', 'conflict'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A' },
  run: async ({ database, now }, { code }) => {
    const { publicKey } = await readRegistration(database, { code, now })
    const status = 'rejected' as const
    await decideRegistration(database, { code, publicKey, status, now })
    return { status }
  },
})
