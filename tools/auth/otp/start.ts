import { dailyBudgets, destinationBudgets } from '../../../src/identity/codes/code-budgets.ts'
import { codeRequest, codeSent, requireChannel } from '../../../src/identity/codes/code-fields.ts'
import { codeMessage } from '../../../src/identity/codes/code-message.ts'
import { destinationOf } from '../../../src/identity/codes/destinations.ts'
import { openCode } from '../../../src/identity/codes/one-time-codes.ts'
import { takeBudgets } from '../../../src/kernel/gates/rate.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'auth.otp.start',
  title: 'Send a sign-in code',
  summary: 'Send a one-time sign-in code by e-mail or SMS.',
  description:
    'The answer is the same whether or not the destination is known. A code has six digits and is valid for ten minutes, five attempts and one use; a new code invalidates the previous one. At most one code a minute and five an hour are sent to a destination. The sandbox shows what it sends at GET /sandbox/outbox.',
  route: 'POST /api/auth/otp/start',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  ownTransactions: true,
  rate: 'otp_ip',
  input: codeRequest,
  output: codeSent,
  failures: ['rate_limited', 'provider_unavailable'],
  example: { channel: 'email', destination: 'ada@example.com' },
  run: async (context, input) => {
    const { database, messages, settings, now: at } = context
    requireChannel(messages, input.channel)
    const destination = await destinationOf(settings, input)
    const resendAfter = await takeBudgets(context, destinationBudgets('otp', destination), at)
    await takeBudgets(context, dailyBudgets(destination, at), at)
    const { challengeId, code, expiresAt } = await database.transaction((connection) =>
      openCode({ ...context, database: connection }, { kind: 'otp', destination, at }),
    )
    await messages.send(codeMessage(settings, { kind: 'otp', destination, code, at }))
    return { challengeId, expiresAt: expiresAt.toISOString(), resendAfter }
  },
})
