import { z } from 'zod'
import { dailyBudgets, destinationBudgets } from '../../../src/identity/code-budgets.ts'
import { codeRequest, codeSent, requireChannel } from '../../../src/identity/code-fields.ts'
import { codeMessage } from '../../../src/identity/code-message.ts'
import { destinationOf } from '../../../src/identity/destinations.ts'
import { loginOptions } from '../../../src/identity/passkeys.ts'
import { startRecovery } from '../../../src/identity/recovery.ts'
import { takeBudgets } from '../../../src/kernel/gates/rate.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'auth.recovery.start',
  title: 'Send a recovery code',
  summary: 'Send a code that gives a locked or lost account back to its owner.',
  description:
    'The answer is the same whether or not the destination is known. Accounts with a passkey also need an assertion over "publicKey". Recovery has budgets of its own: sign-in codes do not use them up.',
  route: 'POST /api/auth/recovery/start',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  ownTransactions: true,
  rate: 'recovery',
  input: codeRequest,
  output: codeSent.extend({
    publicKey: z
      .record(z.string(), z.unknown())
      .describe('WebAuthn request options as JSON, for an account that has a passkey.'),
  }),
  failures: ['rate_limited', 'provider_unavailable'],
  example: { channel: 'email', destination: 'ada@example.com' },
  run: async (context, input) => {
    const { database, messages, settings, now: at } = context
    requireChannel(messages, input.channel)
    const destination = await destinationOf(settings, input)
    const resendAfter = await takeBudgets(context, destinationBudgets('recovery', destination), at)
    await takeBudgets(context, dailyBudgets(destination, at), at)
    const { challengeId, code, expiresAt, publicKey } = await database.transaction((connection) =>
      startRecovery({ ...context, database: connection, passkeys: { loginOptions } }, { destination, at }),
    )
    await messages.send(codeMessage(settings, { kind: 'recovery', destination, code, at }))
    return { challengeId, expiresAt: expiresAt.toISOString(), resendAfter, publicKey }
  },
})
