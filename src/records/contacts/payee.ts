/** The payee that a contact stands for. */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import { type Contact, findContact, type Keeping } from './store.ts'

/**
 * What a call's `contact:NAME` stood for when the call was made. It pays that, or nobody.
 * @property kind of the value: an address on the chain, or the id of a recipient of payouts.
 * @property fingerprint of a write as its caller sent it, with the name: its repeats find the answer of the approved call by it.
 */
export const namedPayee = z.strictObject({
  contactId: z.string(),
  kind: z.enum(['address', 'recipient']),
  chain: z.string().nullable(),
  value: z.string(),
  fingerprint: z.string().exactOptional(),
})
export type NamedPayee = z.output<typeof namedPayee>

/** The address that a contact is paid at on a chain: the one for this chain before the one for any. */
function addressOn({ addresses }: Pick<Contact, 'addresses'>, chain: string): string | undefined {
  const named = addresses.find((one) => one.chain === chain)
  return (named ?? addresses.find((one) => one.chain === null))?.address
}

/** Everything that a contact is paid at. */
export function listPayees({
  addresses,
  recipientId,
}: Pick<Contact, 'addresses' | 'recipientId'>): readonly string[] {
  return [...addresses.map(({ address }) => address), ...(recipientId === null ? [] : [recipientId])]
}

/** What a contact is paid at on a chain; null: everywhere. */
export function listPayeesOn(contact: Contact, chain: string | null): readonly string[] {
  if (chain === null) return listPayees(contact)
  const address = addressOn(contact, chain)
  return [
    ...(address === undefined ? [] : [address]),
    ...(contact.recipientId === null ? [] : [contact.recipientId]),
  ]
}

/** What a contact stands for. @throws Failure `not_found` where it has nothing of the kind. */
export function readPayee(
  contact: Contact,
  { kind, chain }: Pick<NamedPayee, 'kind'> & { chain: string },
): NamedPayee {
  const isBank = kind === 'recipient'
  const value = isBank ? contact.recipientId : addressOn(contact, chain)
  if (value !== null && value !== undefined)
    return { contactId: contact.id, kind, chain: isBank ? null : chain, value }
  throw new Failure(
    'not_found',
    isBank ? 'The contact has no bank account.' : `The contact has no address on ${chain}.`,
    { hint: 'Ask the owner to add it to the contact.' },
  )
}

/** True if a contact is the payee that it was. */
export function isStill(contact: Contact | undefined, { kind, chain, value }: NamedPayee): boolean {
  const now = kind === 'recipient' ? contact?.recipientId : contact && addressOn(contact, chain ?? '')
  return now?.toLowerCase() === value.toLowerCase()
}

/** @throws Failure `conflict` when the contact was removed or has become another payee since the call was made. */
export async function requireSamePayee(
  keeping: Keeping,
  { accountId, payee }: { accountId: string; payee: NamedPayee },
): Promise<void> {
  if (isStill(await findContact(keeping, { id: payee.contactId, accountId }), payee)) return
  throw new Failure(
    'conflict',
    'The contact was changed or removed since this call named it. Nothing was paid.',
    {
      reason: 'payee_changed',
      isFinal: true,
      hint: 'Tell the owner. If the payment is still meant, make it anew with a new idempotency key.',
    },
  )
}
