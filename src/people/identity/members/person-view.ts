/** People of an account and open invitations, as its people see them. */
import { z } from 'zod'
import { memberRoles } from '../../../core/base/principal.ts'
import type { Connection } from '../../../storage/database.ts'
import { unsealAddress } from '../codes/destinations.ts'
import type { Invitation } from './invitations.ts'
import type { Member } from './memberships.ts'

export const roleField = z
  .enum(memberRoles)
  .describe(
    '`owner`: everything; `approver`: reads, and decides on approvals; `viewer`: reads; `accountant`: reads money and statements.',
  )

export const personView = z.strictObject({
  id: z.string().describe('The person: `acct_…`.'),
  displayName: z.string().describe('Name that the person chose.'),
  email: z
    .string()
    .nullable()
    .describe('Address that they sign in with; null without one, and for all but owners.'),
  role: roleField,
  isYou: z.boolean().describe('True for the caller.'),
  mfaEnrolled: z.boolean().describe('True if they have a second factor.'),
  locked: z.boolean().describe('True while they are locked out, until they recover.'),
  joinedAt: z.string().describe('ISO 8601 UTC.'),
})
personView.register(z.globalRegistry, { id: 'Person' })

export const invitationView = z.strictObject({
  id: z.string().describe('`inv_…`'),
  email: z.string().describe('The only address that it is valid for.'),
  role: roleField,
  invitedBy: z.string().describe('Person who invited: `acct_…`.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  expiresAt: z.string().describe('ISO 8601 UTC.'),
})
invitationView.register(z.globalRegistry, { id: 'Invitation' })

interface Viewer {
  readonly id: string
  readonly role: Member['role']
}

/** Shows people to one of them. */
export async function viewPeople(
  { database, settings }: { database: Connection; settings: { readonly dataKey: Uint8Array } },
  people: readonly Member[],
  viewer: Viewer,
): Promise<z.input<typeof personView>[]> {
  const rows =
    people.length === 0
      ? []
      : await database.kysely
          .selectFrom('login_destination')
          .select(['account_id', 'destination_hash as hash', 'sealed_address as sealed'])
          .where('channel', '=', 'email')
          .where(
            'account_id',
            'in',
            people.map(({ personId }) => personId),
          )
          .orderBy('created_at', 'desc')
          .execute()
  const addresses = new Map(rows.map((row) => [row.account_id, row] as const))
  return people.map(({ personId, displayName, role, mfaEnrolled, isLocked, joinedAt }) => {
    const address = addresses.get(personId)
    const mayRead = viewer.role === 'owner' || viewer.id === personId
    return {
      id: personId,
      displayName,
      email: mayRead && address !== undefined ? unsealAddress(settings, address) : null,
      role,
      isYou: viewer.id === personId,
      mfaEnrolled,
      locked: isLocked,
      joinedAt: joinedAt.toISOString(),
    }
  })
}

export function viewInvitation({
  id,
  email,
  role,
  invitedBy,
  createdAt,
  expiresAt,
}: Invitation): z.input<typeof invitationView> {
  return {
    id,
    email,
    role,
    invitedBy,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  }
}
