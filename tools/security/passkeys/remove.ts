import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { type Context, requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findPasskeyPoint } from '../../../src/people/identity/passkeys/passkey-signature.ts'
import { removePasskey } from '../../../src/people/identity/passkeys/remove-passkey.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'

export default defineTool({
  name: 'security.passkeys.remove',
  title: 'Remove a passkey',
  summary: 'Remove a passkey, except the last authentication method and the passkey that owns the wallet.',
  description:
    'The owner is told. 409 `conflict` for the last way in, and for the passkey that owns the wallet.',
  route: 'DELETE /api/security/passkeys/{id}',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'recent',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`pk_…`') }),
  output: z.strictObject({ removed: z.literal(true).describe('Always true.') }),
  failures: ['not_found', 'conflict'],
  example: { id: 'pk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const own = { accountId: requirePerson(context).person.id, id }
    await requireNotOwner(context, own)
    await removePasskey(context.database, own)
    await sendSecurityNotice(context, {
      accountId: own.accountId,
      notice: 'passkey_removed',
      at: context.now,
    })
    await recordChange(context, { action: 'factor.removed', object: { kind: 'passkey', id } })
    return { removed: true as const }
  },
})

/**
 * Rejects the removal of the passkey that owns the wallet on chain, because its money could never move again.
 * @throws Failure `conflict`.
 */
async function requireNotOwner(
  { database }: Pick<Context, 'database'>,
  own: { accountId: string; id: string },
): Promise<void> {
  const owner = (await findOwnedWallet(database, own.accountId))?.owner
  if (owner?.kind !== 'passkey') return
  const point = await findPasskeyPoint(database, own)
  if (point === null || point.x !== owner.x || point.y !== owner.y) return
  throw new Failure(
    'conflict',
    'This passkey owns the wallet on chain: without it the wallet’s money could never be moved.',
    {
      hint: 'Keep it, or first send everything to a wallet of another account.',
    },
  )
}
