import { z } from 'zod'
import type { Context } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { codeVerification } from '../../../src/people/identity/codes/code-fields.ts'
import { developerKeyView, viewDeveloperKey } from '../../../src/people/identity/keys/developer-key-view.ts'
import { listAllKeys } from '../../../src/people/identity/keys/owned-keys.ts'
import { authenticationResponse } from '../../../src/people/identity/passkeys/passkey-response.ts'
import { findPasskeys } from '../../../src/people/identity/passkeys/passkey-store.ts'
import { passkeyView, viewPasskey } from '../../../src/people/identity/passkeys/passkey-view.ts'
import { assertPasskey, countPasskeys } from '../../../src/people/identity/passkeys/passkeys.ts'
import { completeRecovery, type Recovery, recoverByPasskey } from '../../../src/people/identity/recovery.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { type SignedInAnswer, sessionAnswer } from '../../../src/people/identity/sessions/session-answer.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'
import { findEoaSigners } from '../../../src/rails/wallets/signing/signer-store.ts'
import { signerView, viewEoa } from '../../../src/rails/wallets/signing/signer-view.ts'
import { disableEndpoints } from '../../../src/records/events/webhooks/endpoints.ts'
import { removeChannels } from '../../../src/records/notifications/channels.ts'
import type { Connection } from '../../../src/storage/database.ts'

export default defineTool({
  name: 'auth.recovery.complete',
  title: 'Recover an account',
  summary: 'Unlock an account with a recovery code, pause its keys, end all its sessions and open a new one.',
  description:
    'Accounts with a passkey also need its assertion: without one the answer is step_up_required and the code stays valid. Accounts without an address need only the assertion. A wrong, used, expired or unknown code, and one for a destination without an account, always give the same 401. An account locked by an administrator stays locked until one releases the recovery (202); then the owner signs in. After a refusal it is 423. The answer lists every key, signer and passkey of the account: revoke those that are not yours, and resume the others. Webhook endpoints are disabled: activate yours.',
  route: 'POST /api/auth/recovery/complete',
  who: 'public',
  effect: 'write',
  proof: 'none',
  stops: true,
  opensSession: true,
  waits: 'review',
  input: z
    .strictObject({
      challengeId: codeVerification.shape.challengeId,
      code: codeVerification.shape.code.optional(),
      credential: authenticationResponse
        .optional()
        .describe('A WebAuthn assertion as JSON, over the "publicKey" returned with the challenge.'),
    })
    .superRefine(({ code, credential }, context) => {
      if (code === undefined && credential === undefined)
        context.addIssue({ code: 'custom', path: ['code'], message: 'is required without a credential' })
    }),
  output: z.strictObject({
    status: z
      .literal('review')
      .optional()
      .describe(
        'Only member of a 202: an administrator locked the account and decides. Nothing has changed yet.',
      ),
    ...sessionAnswer.partial().shape,
    keys: z
      .array(
        developerKeyView
          .pick({ id: true, name: true, status: true, scopes: true, createdAt: true, expiresAt: true })
          .extend({
            kind: z
              .enum(['agent', 'developer', 'grant'])
              .describe('Kind of key; `grant` belongs to an OAuth client.'),
          }),
      )
      .optional()
      .describe('All unrevoked keys, which are now paused.'),
    signers: z.array(signerView).optional().describe('All EVM keys that sign for the wallet.'),
    passkeys: z.array(passkeyView).optional().describe('All passkeys of the account.'),
  }),
  failures: ['unauthenticated', 'step_up_required', 'account_locked'],
  example: { challengeId: 'chal_01k00000000000000000000000', code: '123456' },
  run: async (context, { challengeId, code, credential }) => {
    const parts = { ...context, passkeys: { assertPasskey, countPasskeys } }
    if (code !== undefined)
      return finish(
        context,
        await completeRecovery(parts, { challengeId, code, credential, now: context.now }),
      )
    if (credential === undefined) throw new Error('the schema requires a code or a credential')
    return finish(context, await recoverByPasskey(parts, { challengeId, credential, now: context.now }))
  },
})

async function finish(context: Context, recovery: Recovery) {
  if (recovery.status === 'recovered') return finishRecovery(context, recovery.session)
  const { accountId, isNew } = recovery
  if (isNew) {
    await sendSecurityNotice(context, { accountId, notice: 'recovery_waits', at: context.now })
    await recordChange(context, {
      accountId,
      action: 'account.recovery_requested',
      object: { kind: 'account', id: accountId },
    })
  }
  return { status: 'review' as const }
}

async function finishRecovery(context: Context, session: SignedInAnswer) {
  const accountId = session.account.id
  if (session.role !== 'owner') {
    const object = { kind: 'account', id: session.personId } as const
    await recordChange(context, { accountId, action: 'account.recovered', object, by: session.personId })
    return {
      ...session,
      keys: [],
      signers: [],
      passkeys: await listOwnPasskeys(context.database, session.personId),
    }
  }
  context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, accountId))
  await disableEndpoints(context.database, accountId)
  await removeChannels(context.database, accountId)
  await recordChange(context, {
    accountId,
    action: 'account.recovered',
    object: { kind: 'account', id: accountId },
    by: session.personId,
  })
  const passkeys = await listOwnPasskeys(context.database, session.personId)
  return { ...session, ...(await accessTo(context.database, accountId)), passkeys }
}

async function listOwnPasskeys(database: Connection, personId: string) {
  return (await findPasskeys(database, { accountId: personId })).map(viewPasskey)
}

async function accessTo(database: Connection, accountId: string) {
  const [keys, signers] = [
    await listAllKeys(database, accountId),
    await findEoaSigners(database, { accountId }),
  ]
  return {
    keys: keys.map((key) => {
      const { policy: _, ...shown } = viewDeveloperKey(key)
      return { ...shown, kind: key.kind }
    }),
    signers: signers.map(viewEoa),
  }
}
