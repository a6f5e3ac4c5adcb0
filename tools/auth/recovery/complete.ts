import { codeShown } from '../../../src/identity/code-fields.ts'
import { authenticationResponse } from '../../../src/identity/passkey-response.ts'
import { assertPasskey, countPasskeys } from '../../../src/identity/passkeys.ts'
import { completeRecovery } from '../../../src/identity/recovery.ts'
import { sessionAnswer } from '../../../src/identity/session-answer.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'auth.recovery.complete',
  title: 'Recover an account',
  summary: 'Unlock an account with a recovery code, end all its sessions and open a new one.',
  description:
    'Accounts with a passkey also need its assertion: without one the answer is step_up_required and the code stays good. A wrong, used, expired or unknown code, and one for a destination without an account, are always the same 401.',
  route: 'POST /api/auth/recovery/complete',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  opensSession: true,
  input: codeShown.extend({
    credential: authenticationResponse
      .optional()
      .describe('A WebAuthn assertion as JSON, over the "publicKey" that came with the code’s challenge.'),
  }),
  output: sessionAnswer,
  failures: ['unauthenticated', 'step_up_required'],
  example: { challengeId: 'chal_01k00000000000000000000000', code: '123456' },
  run: async (context, { challengeId, code, credential }) =>
    completeRecovery(
      { ...context, passkeys: { assertPasskey, countPasskeys } },
      { challengeId, code, credential, now: context.now },
    ),
})
