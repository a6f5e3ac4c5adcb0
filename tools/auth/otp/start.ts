import { secondsUntilFree, takeBudgets } from '../../../src/kernel/gates/rate.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findAsker } from '../../../src/people/identity/codes/asker.ts'
import { codeBudgets, repeatBudgets, resendBudgets } from '../../../src/people/identity/codes/code-budgets.ts'
import { codeRequest, codeSent, requireChannel } from '../../../src/people/identity/codes/code-fields.ts'
import { codeMessage } from '../../../src/people/identity/codes/code-message.ts'
import { parseDestination } from '../../../src/people/identity/codes/destinations.ts'
import { findOpenCode, openCode } from '../../../src/people/identity/codes/one-time-codes.ts'

export default defineTool({
  name: 'auth.otp.start',
  title: 'Send a sign-in code',
  summary: 'Send a one-time sign-in code by e-mail or SMS.',
  description:
    'The answer is the same whether or not the destination is known. A code has six digits and is valid for ten minutes, five attempts and one use. Asking again while it is open sends it again, at most once a minute; otherwise strangers cause at most five codes an hour to a destination, and a browser that its owner signed in with before has a budget of its own. The sandbox shows what it sends at GET /sandbox/outbox.',
  route: 'POST /api/auth/otp/start',
  who: 'public',
  effect: 'write',
  proof: 'none',
  stops: true,
  ownTransactions: true,
  input: codeRequest,
  output: codeSent,
  failures: ['rate_limited', 'provider_unavailable'],
  example: { channel: 'email', destination: 'ada@example.com' },
  run: async (context, input) => {
    const { database, messages, settings, now: at } = context
    requireChannel(messages, input.channel)
    const destination = await parseDestination(settings, input)
    const asker = await findAsker(context, destination)
    const asked = { kind: 'otp' as const, destination, asker, at }
    const open = await findOpenCode(context, asked)
    const resend = resendBudgets('otp', asked)
    const readings = await takeBudgets(
      context,
      [...resend, ...(open === null ? codeBudgets('otp', asked) : repeatBudgets('otp', asked))],
      at,
    )
    const { challengeId, code, expiresAt } =
      open ??
      (await database.transaction((connection) => openCode({ ...context, database: connection }, asked)))
    await messages.send(codeMessage(settings, { kind: 'otp', destination, code, expiresAt, at }))
    const resendAfter = secondsUntilFree(readings.slice(0, resend.length))
    return { challengeId, expiresAt: expiresAt.toISOString(), resendAfter }
  },
})
