import { z } from 'zod'
import { birthDateError } from '../../policies/kyc.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { requireStepUp } from '../../src/kernel/gates/step-up.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { countryCode, personName } from '../../src/people/compliance/identity-fields.ts'
import { applyForKyc } from '../../src/people/compliance/kyc.ts'
import { kycView, viewKyc } from '../../src/people/compliance/kyc-view.ts'

const country = countryCode.describe('ISO 3166-1 alpha-2.')

type AddressParts = Partial<
  Record<'street' | 'city' | 'postalCode' | 'state' | 'country', string | undefined>
>

function joinAddress({ street, city, postalCode, state, country }: AddressParts): string {
  return [street, city, postalCode, state, country]
    .map((part) => part?.trim())
    .filter(Boolean)
    .join(', ')
}

/** Keeps an address both as one line and, unless it was given as one, by its parts. */
function splitAddress(address: string | AddressParts | undefined) {
  if (address === undefined) return {}
  if (typeof address === 'string') return { address, residence: {} }
  const { street, city, postalCode, state } = address
  const parts = Object.entries({ street, city, postalCode, state }).map(([name, part]) => [
    name,
    part?.trim(),
  ])
  return { address: joinAddress(address), residence: Object.fromEntries(parts.filter(([, part]) => part)) }
}

/** Unknown members are ignored, because clients often send complete customer records. */
const request = z.object({
  level: z.enum(['basic', 'full']).default('basic').describe('Level to apply for.'),
  applicant: z
    .object({
      firstName: personName.optional().describe('Given names.'),
      lastName: personName.optional().describe('Family name.'),
      dateOfBirth: z.iso.date().optional().describe('Date of birth, ISO 8601; age 18 to 130.'),
      country: country.optional(),
      address: z
        .union([
          z.string().trim().min(1).max(300),
          z
            .object({
              street: z.string().max(120).optional(),
              city: z.string().max(80).optional(),
              postalCode: z.string().max(20).optional(),
              state: z.string().max(80).optional(),
              country: z.string().max(80).optional(),
            })
            .refine((parts) => joinAddress(parts) !== '', 'must not be empty'),
        ])
        .optional()
        .describe(
          'Residential address: {street, city, postalCode, state, country}, or a string, which some reviewers and brokers do not accept.',
        ),
      email: z.email().max(254).optional().describe('E-mail address.'),
      phone: z
        .string()
        .regex(/^\+[1-9]\d{6,14}$/, 'must be E.164, such as +4915112345678')
        .optional()
        .describe('Phone number, E.164.'),
    })
    .default({})
    .describe('Person to verify. Missing members can follow in another call.'),
  documents: z
    .array(
      z.object({
        type: z.string().trim().min(1).max(40).describe('Type of document, such as `passport`.'),
        country,
        reference: z
          .string()
          .trim()
          .min(1)
          .max(200)
          .describe('Reference by which the reviewer finds the document.'),
      }),
    )
    .max(10)
    .default([])
    .describe('Identity documents; level `full` needs one.'),
})

export default defineTool({
  name: 'compliance.kyc',
  title: 'Identity verification',
  summary: 'Verify the identity of the account’s holder, which raises spending limits.',
  description:
    'A key only reads the status, with {}: use it when `kyc_required` or a limit stops a payment, and tell the owner what `requirements` lists.',
  restDescription:
    'Identity data comes from the person’s own session, is stored sealed, and can be completed in further calls; a complete application is screened and reviewed. A rejection, or a name that needs a manual decision, applies to every level; such a name also suspends an earlier approval until the decision. Sandbox: the last name `Pending`, `Retry` or `Rejected` gives that verdict, any other is approved.',
  route: 'POST /api/compliance/kyc',
  who: 'account',
  scopes: ['compliance:write'],
  effect: 'write',
  proof: 'conditional',
  ownTransactions: true,
  mcp: true,
  restOnly: ['level', 'applicant', 'documents'],
  input: request,
  output: kycView,
  failures: [
    'insufficient_scope',
    'step_up_required',
    'provider_unavailable',
    'screening_unavailable',
    'conflict',
  ],
  example: {
    level: 'basic',
    applicant: {
      firstName: 'Ada',
      lastName: 'Lovelace',
      dateOfBirth: '1990-12-10',
      country: 'DE',
      address: 'Unter den Linden 1, 10117 Berlin',
    },
  },
  run: async (context, { level, applicant, documents }) => {
    const isIdentity = Object.keys(applicant).length > 0 || documents.length > 0
    const isStatusRead = !isIdentity && level === 'basic'
    // Identity data can block an account, so keys must not submit it.
    const caller = requireCaller(context)
    if (caller.kind === 'key' && !isStatusRead) throw personNeeded()
    // An approval raises limits, also those of keys, and binds the account to this name.
    if (caller.kind === 'session' && caller.account.mfaEnrolled && isIdentity) requireStepUp(context)
    const { address, ...person } = applicant
    const { dateOfBirth } = person
    const misfit = dateOfBirth === undefined ? undefined : birthDateError(dateOfBirth, context.now)
    if (misfit !== undefined)
      throw new Failure('invalid_request', `applicant.dateOfBirth: ${misfit}`, {
        issues: [{ path: 'applicant.dateOfBirth', message: misfit }],
      })
    const said = {
      applicant: {
        ...Object.fromEntries(Object.entries(person).filter(([, value]) => value !== undefined)),
        ...splitAddress(address),
      },
      documents,
    }
    const accountId = caller.account.id
    return viewKyc(await applyForKyc(context, { accountId, level, said, at: context.now }))
  },
})

function personNeeded(): Failure {
  return new Failure(
    'insufficient_scope',
    'Identity data must come from the person’s own session; a key can only read the status.',
    {
      scopes: [],
      hint: 'Ask the owner to sign in and submit them. Send {} to read the verification status.',
    },
  )
}
