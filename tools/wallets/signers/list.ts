import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, pageOf } from '../../../src/core/base/page.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listKeys } from '../../../src/people/identity/keys/owned-keys.ts'
import { findPasskeys } from '../../../src/people/identity/passkeys/passkey-store.ts'
import { findEoaSigners } from '../../../src/rails/wallets/signing/signer-store.ts'
import { signerView, viewEoa } from '../../../src/rails/wallets/signing/signer-view.ts'

export default defineTool({
  name: 'wallets.signers.list',
  title: 'Signers',
  summary: 'List the signers of the wallet (passkeys, EVM keys and agents), newest first.',
  description:
    'A person’s transfers are signed by a passkey or an EVM key among them; agents sign by their own keys, within their allowance.',
  route: 'GET /api/wallets/signers',
  who: 'person',
  effect: 'read',
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    signers: z.array(signerView).describe('Signers of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const { database } = context
    const accountId = personOf(context).account.id
    const page = pageOf(input)
    // Ids sort by time after their prefix, so the cursor applies to every kind.
    const own = (prefix: string) => ({
      accountId,
      page: { ...page, after: page.after === null ? null : `${prefix}_${timeOf(page.after)}` },
    })
    const [passkeys, eoas, agents] = await Promise.all([
      findPasskeys(database, own('pk')),
      findEoaSigners(database, own('sgn')),
      listKeys(database, { ...own('key'), kinds: ['agent'] }),
    ])
    const signers = [
      ...passkeys.map(({ id, createdAt }) => shown({ id, type: 'passkey', createdAt })),
      ...eoas.map(viewEoa),
      ...agents.map(({ id, createdAt }) => shown({ id, type: 'agent', createdAt })),
    ].sort((one, other) => (timeOf(one.id) < timeOf(other.id) ? 1 : -1))
    const { rows, nextCursor } = cutPage(signers, page)
    return { signers: [...rows], nextCursor }
  },
})

function timeOf(id: string): string {
  return id.slice(id.indexOf('_') + 1)
}

function shown({ id, type, createdAt }: { id: string; type: 'passkey' | 'agent'; createdAt: Date }) {
  return { id, type, createdAt: createdAt.toISOString() }
}
