import { z } from 'zod'
import { codeShown } from '../../../src/identity/code-fields.ts'
import { authenticationResponse } from '../../../src/identity/passkey-response.ts'
import { assertPasskey, countPasskeys } from '../../../src/identity/passkeys.ts'
import { completeRecovery, recoverByPasskey } from '../../../src/identity/recovery.ts'
import { sessionAnswer } from '../../../src/identity/session-answer.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'auth.recovery.complete',
  title: 'Recover an account',
  summary: 'Unlock an account with a recovery code, end all its sessions and open a new one.',
  description:
    'Accounts with a passkey also need its assertion: without one the answer is step_up_required and the code stays good. Accounts without an address need the assertion alone. A wrong, used, expired or unknown code, and one for a destination without an account, are always the same 401.',
  route: 'POST /api/auth/recovery/complete',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  opensSession: true,
  input: z
    .strictObject({
      challengeId: codeShown.shape.challengeId,
      code: codeShown.shape.code.optional(),
      credential: authenticationResponse
        .optional()
        .describe('A WebAuthn assertion as JSON, over the "publicKey" that came with the challenge.'),
    })
    .superRefine(({ code, credential }, context) => {
      if (code === undefined && credential === undefined)
        context.addIssue({ code: 'custom', path: ['code'], message: 'is required, or a credential' })
    }),
  output: sessionAnswer,
  failures: ['unauthenticated', 'step_up_required'],
  example: { challengeId: 'chal_01k00000000000000000000000', code: '123456' },
  run: async (context, { challengeId, code, credential }) => {
    const parts = { ...context, passkeys: { assertPasskey, countPasskeys } }
    if (code !== undefined)
      return completeRecovery(parts, { challengeId, code, credential, now: context.now })
    if (credential === undefined) throw new Error('the schema lets no such request through')
    return recoverByPasskey(parts, { challengeId, credential, now: context.now })
  },
})
