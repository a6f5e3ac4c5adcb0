import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
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
    const accountId = requirePerson(context).account.id
    const page = toPage(input)
    // Ids sort by time after their prefix, so the cursor applies to every kind.
    const toOwnPage = (prefix: string) => ({
      accountId,
      page: { ...page, after: page.after === null ? null : `${prefix}_${extractTime(page.after)}` },
    })
    const [passkeys, eoas, agents] = await Promise.all([
      findPasskeys(database, toOwnPage('pk')),
      findEoaSigners(database, toOwnPage('sgn')),
      listKeys(database, { ...toOwnPage('key'), kinds: ['agent'] }),
    ])
    const signers = [
      ...passkeys.map(({ id, createdAt }) => viewSigner({ id, type: 'passkey', createdAt })),
      ...eoas.map(viewEoa),
      ...agents.map(({ id, createdAt }) => viewSigner({ id, type: 'agent', createdAt })),
    ].sort((one, other) => (extractTime(one.id) < extractTime(other.id) ? 1 : -1))
    const { rows, nextCursor } = cutPage(signers, page)
    return { signers: [...rows], nextCursor }
  },
})

function extractTime(id: string): string {
  return id.slice(id.indexOf('_') + 1)
}

function viewSigner({ id, type, createdAt }: { id: string; type: 'passkey' | 'agent'; createdAt: Date }) {
  return { id, type, createdAt: createdAt.toISOString() }
}
