import { z } from 'zod'
import type { Context } from '../../../src/kernel/context.ts'
import { secondsUntilFree, takeBudgets } from '../../../src/kernel/gates/rate.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findAsker } from '../../../src/people/identity/codes/asker.ts'
import {
  addressBudgets,
  codeBudgets,
  repeatBudgets,
  resendBudgets,
} from '../../../src/people/identity/codes/code-budgets.ts'
import { codeRequest, codeSent, requireChannel } from '../../../src/people/identity/codes/code-fields.ts'
import { codeMessage } from '../../../src/people/identity/codes/code-message.ts'
import { parseDestination } from '../../../src/people/identity/codes/destinations.ts'
import { findOpenCode } from '../../../src/people/identity/codes/one-time-codes.ts'
import { loginOptions } from '../../../src/people/identity/passkeys/passkeys.ts'
import { startGuestRecovery, startRecovery } from '../../../src/people/identity/recovery.ts'
import { channels } from '../../../src/providers/messages/port.ts'
import type { RateBudget } from '../../../src/providers/rate-limiter/port.ts'

/** Validity of passkey options, in seconds, as for sign-in. */
const PASSKEY_SECONDS = 5 * 60

const request = z
  .strictObject({
    channel: z
      .enum([...channels, 'passkey', 'guest'])
      .describe(
        'Channel of the code. `passkey` is for accounts without an address: no code is sent. `guest`, in the sandbox only, is for locked guests without a passkey: the answer contains the code.',
      ),
    destination: codeRequest.shape.destination
      .optional()
      .describe('E-mail address or phone number used for sign-in; for `guest` the account id, `acct_…`.'),
  })
  .superRefine(({ channel, destination }, context) => {
    const isRequired = channel !== 'passkey'
    if (isRequired === (destination !== undefined)) return
    const message = isRequired ? 'is required' : 'is not allowed with a passkey'
    context.addIssue({ code: 'custom', path: ['destination'], message })
  })

export default defineTool({
  name: 'auth.recovery.start',
  title: 'Start account recovery',
  summary: 'Start the recovery of a locked or lost account by sending a code or requesting its passkey.',
  description:
    'The answer is the same whether or not the destination is known. Accounts with a passkey also need an assertion over "publicKey". An account without an address is recovered with its passkey only: {"channel":"passkey"}. Recovery has its own rate limits, separate from sign-in codes, and a browser that the owner signed in with before has its own among them. Asking again while a code is open sends it again.',
  route: 'POST /api/auth/recovery/start',
  who: 'public',
  effect: 'write',
  proof: 'none',
  stops: true,
  ownTransactions: true,
  input: request,
  output: codeSent.extend({
    publicKey: z
      .record(z.string(), z.unknown())
      .describe('WebAuthn request options as JSON, for an account that has a passkey.'),
    code: z
      .string()
      .optional()
      .describe('For `guest` only: the recovery code, because guests have no address.'),
  }),
  failures: ['rate_limited', 'provider_unavailable'],
  example: { channel: 'email', destination: 'ada@example.com' },
  run: async (context, { channel, destination }) => {
    if (channel !== 'email' && channel !== 'sms')
      await takeBudgets(context, callerBudgets(context), context.now)
    if (channel === 'passkey' || destination === undefined) return requestPasskey(context)
    if (channel === 'guest') return showGuestCode(context, destination)
    return sendCode(context, { channel, destination })
  },
})

/** Budgets of a request that names no address: those of the browser, or of the stranger's network address. */
function callerBudgets({ knownBrowser = null, clientAddress = 'unknown' }: Context): RateBudget[] {
  if (knownBrowser === null) return addressBudgets('recovery', clientAddress)
  return [{ rateClass: 'recovery', client: `known:${knownBrowser.id}`, endsAt: null }]
}

async function requestPasskey({ database, now, ...context }: Context) {
  const { challengeId, publicKey } = await database.transaction((connection) =>
    loginOptions({ ...context, database: connection }, now),
  )
  const expiresAt = new Date(now.getTime() + PASSKEY_SECONDS * 1000).toISOString()
  return { challengeId, expiresAt, resendAfter: 0, publicKey }
}

async function showGuestCode({ database, now: at, ...context }: Context, guestId: string) {
  if (context.settings.mode !== 'sandbox') requireChannel(context.messages, 'guest')
  const asker = { id: context.clientAddress ?? 'unknown' }
  const { expiresAt, ...opened } = await database.transaction((connection) =>
    startGuestRecovery({ ...context, database: connection }, { guestId, asker, at }),
  )
  return { ...opened, expiresAt: expiresAt.toISOString(), resendAfter: 0, publicKey: {} }
}

async function sendCode(context: Context, input: z.output<typeof codeRequest>) {
  const { database, messages, settings, now: at } = context
  requireChannel(messages, input.channel)
  const destination = await parseDestination(settings, input)
  const asker = await findAsker(context, destination)
  const asked = { kind: 'recovery' as const, destination, asker, at }
  const open = await findOpenCode(context, asked)
  const resend = resendBudgets('recovery', asked)
  const readings = await takeBudgets(
    context,
    [...resend, ...(open === null ? codeBudgets('recovery', asked) : repeatBudgets('recovery', asked))],
    at,
  )
  const { challengeId, code, expiresAt, publicKey } = await database.transaction((connection) =>
    startRecovery(
      { ...context, database: connection, passkeys: { loginOptions } },
      { destination, asker, open, at },
    ),
  )
  await messages.send(codeMessage(settings, { kind: 'recovery', destination, code, expiresAt, at }))
  const resendAfter = secondsUntilFree(readings.slice(0, resend.length))
  return { challengeId, expiresAt: expiresAt.toISOString(), resendAfter, publicKey }
}
