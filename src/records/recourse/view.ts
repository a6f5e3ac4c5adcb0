/** A recourse as the payer sees it. */
import { z } from 'zod'
import { untrustedText, untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { type Asset, assetDecimals, toDecimal } from '../../core/money/money.ts'
import {
  parseSteps,
  type Recourse,
  recourseKinds,
  recourseReasons,
  recourseRoutes,
  recourseStatuses,
  stepActions,
  stepOutcomes,
} from './store.ts'

export const recourseObject = z.strictObject({
  kind: z.enum(recourseKinds).describe('Kind of the payment.'),
  id: z.string().min(1).max(64).describe('Its id, such as `buy_…`.'),
})

const stepView = z.strictObject({
  at: z.string().describe('ISO 8601 UTC.'),
  action: z.enum(stepActions).describe('What was tried; `refund`: money arrived.'),
  outcome: z.enum(stepOutcomes).describe('`raced`: the payee was faster.'),
  evidence: z
    .record(z.string(), untrustedText('A fact.'))
    .optional()
    .describe('What shows it, such as `transaction`.'),
})

export const recourseView = z.strictObject({
  recourseId: z.string().describe('`rec_…`'),
  object: recourseObject.describe('The payment.'),
  reason: z.enum(recourseReasons).describe('Reason given.'),
  note: untrustedTextOrNull('Note given.'),
  status: z
    .enum(recourseStatuses)
    .describe('`open`: read it again; `refused`: by the payee; `impossible`: no way to get it back.'),
  route: z.enum(recourseRoutes).describe('Way that is or was tried last.'),
  claimed: z.string().describe('Amount to get back.'),
  recovered: z.string().describe('What is back.'),
  asset: z.string().describe('Asset of both.'),
  delivered: z.boolean().describe('True if what was bought came after all.'),
  deadline: z.string().describe('It ends by then, ISO 8601 UTC.'),
  steps: z.array(stepView).describe('What was done, oldest first.'),
  hint: z.string().describe('What to do next.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  endedAt: z.string().nullable().describe('ISO 8601 UTC; null while open.'),
})
recourseView.register(z.globalRegistry, { id: 'Recourse' })

/** One in a list: what was tried is read by itself. */
export const listedRecourse = recourseView.omit({ note: true, delivered: true, steps: true, hint: true })

export function viewListed(recourse: Recourse): z.input<typeof listedRecourse> {
  const { note: _note, delivered: _delivered, steps: _steps, hint: _hint, ...listed } = viewRecourse(recourse)
  return listed
}

const hints: Readonly<Record<Recourse['status'], string>> = {
  open: 'Read GET /api/recourse/{id} again in a few seconds; it goes on by itself. Do not pay again for the same.',
  recovered: 'The money is available again.',
  partly_recovered: 'A part of the money is available again; the rest is lost. Tell the owner.',
  refused: 'The payee refused. Tell the owner; steps and evidence show what was tried.',
  expired: 'Nothing came back in time. Tell the owner.',
  impossible:
    'This payment cannot be taken back: its payee offers no way. Tell the owner, who can ask the payee.',
}

const knownAsset = z.custom<Asset>((name) => typeof name === 'string' && name in assetDecimals)

export function viewRecourse(recourse: Recourse): z.input<typeof recourseView> {
  const { status, object_kind: kind, object_id: id, is_delivered: delivered } = recourse
  const asset = knownAsset.parse(recourse.asset)
  const latest = parseSteps(recourse).at(-1)?.evidence?.why
  return {
    recourseId: recourse.id,
    object: { kind, id },
    reason: recourse.reason,
    note: recourse.note,
    status,
    route: recourse.route,
    claimed: toDecimal({ asset, units: recourse.claimed }),
    recovered: toDecimal({ asset, units: recourse.recovered }),
    asset,
    delivered,
    deadline: recourse.deadline.toISOString(),
    steps: parseSteps(recourse).map(({ at, ...step }) => ({ at: new Date(at).toISOString(), ...step })),
    hint:
      status === 'recovered' && delivered
        ? 'What was bought has come: read the purchase. Nothing is owed.'
        : status === 'impossible' && latest !== undefined
          ? `${latest} Tell the owner.`
          : hints[status],
    createdAt: recourse.created_at.toISOString(),
    endedAt: recourse.ended_at?.toISOString() ?? null,
  }
}
