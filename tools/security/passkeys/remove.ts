import { z } from 'zod'
import { Failure } from '../../../src/failures/failure.ts'
import { ownPoint } from '../../../src/identity/passkeys/passkey-signature.ts'
import { removePasskey } from '../../../src/identity/passkeys/remove-passkey.ts'
import { noticeOwner } from '../../../src/identity/security-notices.ts'
import { type Context, personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findOwnedWallet } from '../../../src/wallets/store.ts'

export default defineTool({
  name: 'security.passkeys.remove',
  title: 'Remove a passkey',
  summary: 'Remove a passkey; the last way into the account stays, and so does the one that owns the wallet.',
  route: 'DELETE /api/security/passkeys/{id}',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  stepUp: 'recent',
  input: z.strictObject({ id: z.string().max(64).describe('`pk_…`') }),
  output: z.strictObject({ removed: z.literal(true).describe('It no longer signs anybody in.') }),
  failures: ['not_found', 'conflict'],
  example: { id: 'pk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const own = { accountId: personOf(context).account.id, id }
    await refuseOwner(context, own)
    await removePasskey(context.database, own)
    await noticeOwner(context, { accountId: own.accountId, notice: 'passkey_removed', at: context.now })
    await recordChange(context, { action: 'factor.removed', object: { kind: 'passkey', id } })
    return { removed: true as const }
  },
})

/** Without the passkey that owns the wallet on chain nobody could ever move its money. @throws Failure `conflict`. */
async function refuseOwner(
  { database }: Pick<Context, 'database'>,
  own: { accountId: string; id: string },
): Promise<void> {
  const owner = (await findOwnedWallet(database, own.accountId))?.owner
  if (owner?.kind !== 'passkey') return
  const point = await ownPoint(database, own)
  if (point === null || point.x !== owner.x || point.y !== owner.y) return
  throw new Failure(
    'conflict',
    'This passkey owns the wallet on chain: without it nobody could move its money.',
    {
      hint: 'Keep it. To leave it behind, send everything to a wallet of another account first.',
    },
  )
}
