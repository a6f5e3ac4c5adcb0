import { z } from 'zod'
import { birthDateError } from '../../policies/kyc.ts'
import { countryCode, personName } from '../../src/compliance/identity-fields.ts'
import { applyForKyc } from '../../src/compliance/kyc.ts'
import { kycView, viewKyc } from '../../src/compliance/kyc-view.ts'
import { Failure } from '../../src/failures/failure.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

const country = countryCode.describe('ISO 3166-1 alpha-2.')

/** Unknown members are ignored: such bodies come from systems that know more of their customers than we ask. */
const request = z.object({
  level: z.enum(['basic', 'full']).default('basic').describe('The level to apply for.'),
  applicant: z
    .object({
      firstName: personName.optional().describe('Given names.'),
      lastName: personName.optional().describe('Family name.'),
      dateOfBirth: z.iso.date().optional().describe('ISO 8601 date; of age, and 130 years ago at most.'),
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
            .transform((parts) =>
              Object.values(parts)
                .map((part) => part?.trim())
                .filter(Boolean)
                .join(', '),
            )
            .refine((address) => address !== '', 'says nothing'),
        ])
        .optional()
        .describe('Where they live: a text, or {street, city, postalCode, state, country}.'),
      email: z.email().max(254).optional().describe('E-mail address.'),
      phone: z
        .string()
        .regex(/^\+[1-9]\d{6,14}$/, 'must be E.164, such as +4915112345678')
        .optional()
        .describe('Phone number, E.164.'),
    })
    .default({})
    .describe('Who is to be verified. What is missing can follow in another call.'),
  documents: z
    .array(
      z.object({
        type: z.string().trim().min(1).max(40).describe('Such as `passport`.'),
        country,
        reference: z.string().trim().min(1).max(200).describe('Where the reviewer finds it.'),
      }),
    )
    .max(10)
    .default([])
    .describe('Identity documents; level `full` needs one.'),
})

export default defineTool({
  name: 'compliance.kyc',
  title: 'Identity verification',
  summary: 'Verify who the account’s holder is, which raises what may be spent.',
  description:
    'What is said is kept (sealed) and can be completed in further calls: `requirements` lists what is missing. Nothing missing: it is screened and reviewed. Call it again with `{}` to read where a review stands: that is all that a key may do, data come from the person’s own session. A rejection, and a name that a person must look at, hold at every level; such a name takes an earlier approval back until somebody has decided. Sandbox: the last name `Pending`, `Retry` or `Rejected` gets that verdict, anybody else is approved.',
  route: 'POST /api/compliance/kyc',
  who: 'account',
  scopes: ['compliance:write'],
  effect: 'write',
  ownTransactions: true,
  mcp: true,
  input: request,
  output: kycView,
  failures: ['insufficient_scope', 'provider_unavailable', 'screening_unavailable', 'conflict'],
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
    const saysNothing = Object.keys(applicant).length === 0 && documents.length === 0 && level === 'basic'
    // What is said of a person can freeze their account: no key says it.
    if (callerOf(context).kind === 'key' && !saysNothing) throw personNeeded()
    const { dateOfBirth } = applicant
    const misfit = dateOfBirth === undefined ? undefined : birthDateError(dateOfBirth, context.now)
    if (misfit !== undefined)
      throw new Failure('invalid_request', `applicant.dateOfBirth: ${misfit}`, {
        issues: [{ path: 'applicant.dateOfBirth', message: misfit }],
      })
    const said = {
      applicant: Object.fromEntries(Object.entries(applicant).filter(([, value]) => value !== undefined)),
      documents,
    }
    const accountId = callerOf(context).account.id
    return viewKyc(await applyForKyc(context, { accountId, level, said, at: context.now }))
  },
})

function personNeeded(): Failure {
  return new Failure(
    'insufficient_scope',
    'Identity data come from the person’s own session; a key only reads.',
    {
      scopes: [],
      hint: 'Ask the owner to sign in and submit them. Send {} to read where the verification stands.',
    },
  )
}
