/** A contact as its owner and the agents see it. */
import { z } from 'zod'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { chainInput } from '../../core/money/chains.ts'
import { findPaidBefore } from './names.ts'
import { listPayees } from './payee.ts'
import type { Contact, Keeping } from './store.ts'

export const contactView = z.strictObject({
  id: z.string().describe('`con_…`'),
  name: untrustedTextOrNull('Name, for `contact:NAME`; null in a replayed answer.'),
  addresses: z
    .array(
      z.strictObject({
        chain: chainInput.nullable().describe('Chain by name; null: any.'),
        address: z.string().describe('EVM address.'),
      }),
    )
    .describe('Where it is paid.'),
  recipientId: z.string().nullable().describe('`rcp_…`: bank account that it is paid at; null: none.'),
  email: untrustedTextOrNull('E-mail address, for the owner only.'),
  addedBy: z.string().describe('Person who added it.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  addressChangedAt: z
    .string()
    .nullable()
    .describe('When its addresses or recipient last changed, ISO 8601 UTC; null: never.'),
  paidBefore: z
    .strictObject({
      count: z.int().describe('Payments to what it has now.'),
      lastAt: z.string().nullable().describe('The last one, ISO 8601 UTC; null: none.'),
    })
    .describe('What the books know.'),
})
contactView.register(z.globalRegistry, { id: 'Contact' })

/** @param isOwner keys see no e-mail addresses. */
export async function viewContacts(
  { database }: Keeping,
  contacts: readonly Contact[],
  { accountId, isOwner }: { accountId: string; isOwner: boolean },
): Promise<z.input<typeof contactView>[]> {
  const listFolded = (contact: Contact) => [
    ...new Set(listPayees(contact).map((payee) => payee.toLowerCase())),
  ]
  const known = contacts.flatMap(listFolded)
  const paid =
    known.length === 0
      ? new Map<string, never>()
      : await findPaidBefore(database, {
          accountId,
          addresses: known,
          recipientIds: contacts.flatMap(({ recipientId }) => recipientId ?? []),
        })
  return contacts.map((contact) => {
    const found = listFolded(contact).flatMap((payee) => paid.get(payee) ?? [])
    const lastAt = found.reduce<Date | null>(
      (latest, one) =>
        one.lastAt !== null && (latest === null || one.lastAt > latest) ? one.lastAt : latest,
      null,
    )
    const { id, name, addresses, recipientId, email, addedBy, createdAt, readdressedAt } = contact
    return {
      id,
      name,
      addresses: [...addresses],
      recipientId,
      email: isOwner ? email : null,
      addedBy,
      createdAt: createdAt.toISOString(),
      addressChangedAt: readdressedAt > createdAt ? readdressedAt.toISOString() : null,
      paidBefore: {
        count: found.reduce((sum, { count }) => sum + count, 0),
        lastAt: lastAt?.toISOString() ?? null,
      },
    }
  })
}
