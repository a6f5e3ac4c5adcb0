/** A person's own answers for an account at the broker, beyond the verified identity, and the account as shown. */
import { z } from 'zod'
import type { BrokerageApplication, fundingSources } from '../../providers/broker/accounts.ts'
import type { KeptBrokerageAccount } from './brokerage-store.ts'

/** Members of {@link BrokerageApplication} that come from the verified identity. */
export interface VerifiedApplicant {
  readonly firstName?: string | undefined
  readonly lastName?: string | undefined
  readonly dateOfBirth?: string | undefined
  readonly country?: string | undefined
  readonly email?: string | undefined
  readonly phone?: string | undefined
  readonly residence?:
    | {
        readonly street?: string | undefined
        readonly city?: string | undefined
        readonly state?: string | undefined
        readonly postalCode?: string | undefined
      }
    | undefined
}

const answer = (question: string) =>
  z.boolean().describe(`${question} The owner answers this, never an agent.`)

export const disclosures = z.strictObject({
  isControlPerson: answer('True for a director, officer or 10 % owner of a listed company.'),
  isAffiliatedExchangeOrFinra: answer('True for an employee of a broker, an exchange or FINRA.'),
  isPoliticallyExposed: answer('True for a politically exposed person.'),
  immediateFamilyExposed: answer('True if a close relative is a politically exposed person.'),
})

export const brokerageView = z.strictObject({
  status: z
    .enum(['none', 'opening', 'pending', 'action_required', 'active', 'rejected', 'closed'])
    .describe(
      '`none`: not opened; `opening`: sent, not answered; `pending`: under review; `action_required`: the broker needs something from its holder; `active`: orders are accepted.',
    ),
  requirements: z
    .array(z.string())
    .describe('Members that the verified identity lacks, as paths of POST /api/compliance/kyc.'),
  openedAt: z.string().nullable().describe('When it was applied for, ISO 8601 UTC; null before.'),
})
brokerageView.register(z.globalRegistry, { id: 'BrokerageAccount' })

/** @param kept null: the broker keeps no accounts, and everybody can order. */
export function viewBrokerage(
  kept: KeptBrokerageAccount | undefined | null,
  person: VerifiedApplicant | null,
): z.output<typeof brokerageView> {
  if (kept === null) return { status: 'active', requirements: [], openedAt: null }
  if (kept === undefined) return { status: 'none', requirements: missingFor(person), openedAt: null }
  return { status: kept.status, requirements: [], openedAt: kept.createdAt.toISOString() }
}

/** Lists what a verified identity lacks. @param person null: none is verified. */
export function missingFor(person: VerifiedApplicant | null): string[] {
  const { firstName, lastName, dateOfBirth, country, email, phone, residence = {} } = person ?? {}
  const given = { firstName, lastName, dateOfBirth, country, email, phone }
  const { street, city, postalCode } = residence
  return [
    ...Object.entries(given),
    ...Object.entries({ street, city, postalCode }).map(
      ([name, value]) => [`address.${name}`, value] as const,
    ),
  ].flatMap(([name, value]) => (value === undefined ? [`applicant.${name}`] : []))
}

/** Joins the verified identity with the person's own answers. @returns null when the identity lacks something. */
export function buildApplication(
  person: VerifiedApplicant | null,
  {
    taxId,
    taxIdType,
    taxResidence,
    fundingSources: sources,
    disclosures: said,
    agreedFrom,
    at,
  }: {
    taxId: string
    taxIdType: string
    taxResidence?: string | undefined
    fundingSources: readonly (typeof fundingSources)[number][]
    disclosures: z.output<typeof disclosures>
    agreedFrom: string
    at: Date
  },
): BrokerageApplication | null {
  const { firstName, lastName, dateOfBirth, country, email, phone, residence = {} } = person ?? {}
  const { street, city, state, postalCode } = residence
  if (!firstName || !lastName || !dateOfBirth || !country || !email || !phone) return null
  if (!street || !city || !postalCode) return null
  return {
    ...{ firstName, lastName, dateOfBirth, country, email, phone },
    ...{ street, city, state: state ?? null, postalCode },
    ...{ taxId, taxIdType, taxResidence: taxResidence ?? country },
    fundingSources: sources,
    disclosures: said,
    agreedAt: at.toISOString(),
    agreedFrom,
    firstSentAt: at.toISOString(),
  }
}
