/** A violated rule of a policy, as callers and owners see it. */
import { z } from 'zod'

export const violationView = z.strictObject({
  rule: z.string().describe('Name of the violated rule.'),
  limit: z.string().nullable().describe('Limit of the policy.'),
  used: z.string().nullable().describe('Amount or count already used in the period.'),
  requested: z.string().nullable().describe('Requested value.'),
  remaining: z.string().nullable().describe('Remaining amount or count.'),
  resetsAt: z.string().nullable().describe('When the same spend can be requested again, ISO 8601 UTC.'),
  agentId: z.string().optional().describe('`key_…`: whose policy it is, of a delegated key or one above it.'),
})
violationView.register(z.globalRegistry, { id: 'Violation' })
