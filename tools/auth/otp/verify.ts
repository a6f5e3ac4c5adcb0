import { z } from 'zod'
import { findPerson, requirePerson } from '../../../src/kernel/context.ts'
import { requireRecentProof } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { codeVerification } from '../../../src/people/identity/codes/code-fields.ts'
import { linkByCode, signInByCode } from '../../../src/people/identity/codes/code-sign-in.ts'
import { unchangedSessionAnswer } from '../../../src/people/identity/sessions/session-answer.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'

export default defineTool({
  name: 'auth.otp.verify',
  title: 'Sign in with a code',
  summary: 'Sign in with a one-time code; a new destination gets a new account with a wallet.',
  description:
    'A wrong, used, expired or unknown code always gives the same 401. A wrong code counts against the code, never against the account. With "link" the destination is added to the signed-in account, which needs a fresh second factor if one is enrolled.',
  route: 'POST /api/auth/otp/verify',
  who: 'public',
  effect: 'write',
  proof: 'conditional',
  stops: true,
  opensSession: true,
  input: codeVerification.extend({
    link: z
      .boolean()
      .optional()
      .describe('True adds the destination to the signed-in account instead of signing in. Default: false.'),
  }),
  output: unchangedSessionAnswer,
  failures: ['unauthenticated', 'step_up_required', 'account_locked', 'conflict'],
  example: { challengeId: 'chal_01k00000000000000000000000', code: '123456' },
  run: async (context, { challengeId, code, link }) => {
    const { now } = context
    const shown = { challengeId, code, now }
    if (link !== true) {
      const furnish = (accountId: string) => openWallet(context, { accountId, at: now })
      return signInByCode({ ...context, furnish }, shown)
    }
    findPerson(context)
    const { account, person, session } = requirePerson(context)
    requireRecentProof(context)
    const recordAdded = (channel: string) =>
      // The address is personal data and is not recorded.
      recordChange(context, { action: 'factor.added', object: { kind: channel, id: person.id } })
    return linkByCode({ ...context, recordAdded }, { ...shown, account, person, session })
  },
})
