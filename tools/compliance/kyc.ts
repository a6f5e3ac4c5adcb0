import { z } from 'zod'
import { applyForKyc } from '../../src/compliance/kyc.ts'
import { kycView, viewKyc } from '../../src/compliance/kyc-view.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

const name = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^\P{Cc}*$/u, 'must not hold control characters')
const country = z
  .string()
  .regex(/^[A-Z]{2}$/, 'must be an ISO 3166-1 alpha-2 code such as DE')
  .describe('ISO 3166-1 alpha-2.')

/** Unknown members are ignored: such bodies come from systems that know more of their customers than we ask. */
const request = z.object({
  level: z.enum(['basic', 'full']).default('basic').describe('The level to apply for.'),
  applicant: z
    .object({
      firstName: name.optional().describe('Given names.'),
      lastName: name.optional().describe('Family name.'),
      dateOfBirth: z.iso.date().optional().describe('ISO 8601 date.'),
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
            .transform((parts) => Object.values(parts).filter(Boolean).join(', ')),
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
    'What is said is kept (sealed) and can be completed in further calls: `requirements` lists what is missing. Nothing missing: it is screened and reviewed. Call it again with `{}` to read where a review stands. Sandbox: the last name `Pending`, `Retry` or `Rejected` gets that verdict, anybody else is approved.',
  route: 'POST /api/compliance/kyc',
  who: 'account',
  scopes: ['compliance:write'],
  effect: 'write',
  ownTransactions: true,
  mcp: true,
  input: request,
  output: kycView,
  failures: ['provider_unavailable', 'screening_unavailable', 'conflict'],
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
    const said = {
      applicant: Object.fromEntries(Object.entries(applicant).filter(([, value]) => value !== undefined)),
      documents,
    }
    const accountId = callerOf(context).account.id
    return viewKyc(await applyForKyc(context, { accountId, level, said, at: context.now }))
  },
})
