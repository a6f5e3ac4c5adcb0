import { renderSVG } from 'uqr'
import { z } from 'zod'
import { STEP_UP_SECONDS } from '../../policies/step-up.ts'
import { Failure } from '../../src/failures/failure.ts'
import { lockAccountRow, recordFailedFactor } from '../../src/identity/locks.ts'
import {
  activate,
  beginEnrollment,
  disable,
  type MfaStatus,
  mfaStatus,
  useRecoveryCode,
  useTotp,
} from '../../src/identity/mfa.ts'
import { noticeOwner } from '../../src/identity/security-notices.ts'
import { endStepUps, stepUpSession } from '../../src/identity/store.ts'
import { type Context, personOf } from '../../src/kernel/context.ts'
import { requireRecentProof } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'

const needs = {
  status: [],
  enroll: [],
  activate: ['code'],
  verify: ['code', 'recoveryCode'],
  disable: ['code', 'recoveryCode'],
} as const

const request = z
  .strictObject({
    action: z
      .enum(['status', 'enroll', 'activate', 'verify', 'disable'])
      .describe(
        '`enroll` shows a new secret, `activate` makes it the second factor, `verify` steps this session up for five minutes, `disable` removes it.',
      ),
    code: z
      .string()
      .regex(/^\d{6}$/, 'must be six digits')
      .optional()
      .describe('The six digits that the authenticator shows. Each is taken once.'),
    recoveryCode: z
      .string()
      .min(16)
      .max(32)
      .optional()
      .describe(
        'One of the recovery codes, in place of `code` in `verify` and `disable`. Each is taken once.',
      ),
  })
  .superRefine((input, context) => {
    const taken: readonly string[] = needs[input.action]
    const given = (['code', 'recoveryCode'] as const).filter((name) => input[name] !== undefined)
    for (const name of given.filter((member) => !taken.includes(member)))
      context.addIssue({ code: 'custom', path: [name], message: `is not for ${input.action}` })
    if (taken.length > 0 && given.length !== 1)
      context.addIssue({
        code: 'custom',
        path: ['code'],
        message: `exactly one of ${taken.join(', ')} is needed`,
      })
  })

export default defineTool({
  name: 'security.mfa',
  title: 'Second factor',
  summary: 'Enroll, activate, show or disable the account’s second factor (TOTP), or read its state.',
  description:
    'The only operation that writes second factors. `enroll` and `activate` need a sign-in of the last five minutes in production. The owner is told by mail of each. Privileged operations answer 401 step_up_required until `verify` was called on the same session in the last five minutes. Ten wrong codes in an hour lock the account.',
  route: 'POST /api/security/mfa',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  shownOnce: ['otpauthUri', 'qr', 'recoveryCodes'],
  input: request,
  output: z.strictObject({
    status: z.enum(['none', 'pending', 'active']).describe('How far the second factor has come.'),
    enrolled: z.boolean().describe('Whether it is active.'),
    recoveryCodesLeft: z.int().describe('Recovery codes that were not used yet.'),
    steppedUpUntil: z
      .string()
      .nullable()
      .describe('Until when this session may do what is privileged, ISO 8601 UTC.'),
    otpauthUri: z
      .string()
      .nullable()
      .optional()
      .describe('After `enroll`, once: what an authenticator reads.'),
    qr: z.string().nullable().optional().describe('After `enroll`, once: the same as an SVG data URI.'),
    recoveryCodes: z.array(z.string()).nullable().optional().describe('After `activate`, once.'),
  }),
  failures: ['step_up_required', 'conflict'],
  example: { action: 'status' },
  run: async (context, input) => {
    if (input.action === 'status') return state(context)
    // An old session that was stolen must not put its own second factor before the owner's account.
    if (input.action === 'enroll' || input.action === 'activate') requireRecentProof(context)
    // Guesses go one after the other, and the tenth wrong one stops those behind it.
    if ((await lockAccountRow(context.database, personOf(context).account.id)) === 'locked') throw lockedNow()
    switch (input.action) {
      case 'enroll':
        return enroll(context)
      case 'activate': {
        await requireFactor(context, input, 'pending')
        const { account, session } = personOf(context)
        const recoveryCodes = await activate(context, { accountId: account.id, at: context.now })
        await stepUpSession(context.database, session.id, context.now)
        await noticeOwner(context, { accountId: account.id, notice: 'factor_activated', at: context.now })
        await recordFactor(context, 'factor.added')
        return { ...(await state(context, context.now)), recoveryCodes: [...recoveryCodes] }
      }
      case 'verify': {
        await requireFactor(context, input, 'active')
        await stepUpSession(context.database, personOf(context).session.id, context.now)
        return state(context, context.now)
      }
      case 'disable': {
        await requireFactor(context, input, 'active')
        const { id: accountId } = personOf(context).account
        await disable(context.database, accountId)
        // What was shown of it counts no longer, whatever factor comes next.
        await endStepUps(context.database, accountId)
        await noticeOwner(context, { accountId, notice: 'factor_removed', at: context.now })
        await recordFactor(context, 'factor.removed')
        return state(context, null)
      }
    }
  },
})

function recordFactor(context: Context, action: 'factor.added' | 'factor.removed'): Promise<void> {
  return recordChange(context, { action, object: { kind: 'totp', id: personOf(context).account.id } })
}

function lockedNow(): Failure {
  return new Failure('account_locked', 'Too many wrong codes: the account is locked.', {
    isCommitted: true,
    hint: 'Unlock it through POST /api/auth/recovery/start.',
  })
}

/** @param steppedUpAt where this call has changed it. */
async function state(context: Context, steppedUpAt = personOf(context).session.steppedUpAt) {
  const found: MfaStatus = await mfaStatus(context.database, personOf(context).account.id)
  const until = steppedUpAt === null ? null : new Date(steppedUpAt.getTime() + STEP_UP_SECONDS * 1000)
  const isFresh = found.status === 'active' && until !== null && until > context.now
  return {
    ...found,
    enrolled: found.status === 'active',
    steppedUpUntil: isFresh ? until.toISOString() : null,
  }
}

async function enroll(context: Context) {
  const { account } = personOf(context)
  const { database, now: at } = context
  // Enrollments that replace one that was begun tell nothing new.
  const isFirst = (await mfaStatus(database, account.id)).status === 'none'
  const secret = await beginEnrollment(context, { accountId: account.id, at })
  if (isFirst) await noticeOwner(context, { accountId: account.id, notice: 'factor_begun', at })
  const { generateURI } = await import('otplib')
  const otpauthUri = generateURI({ issuer: 'Bursar', label: account.displayName, secret })
  const qr = `data:image/svg+xml;base64,${Buffer.from(renderSVG(otpauthUri)).toString('base64')}`
  return { ...(await state(context)), otpauthUri, qr }
}

/** Takes a code or counts the failure, which then stands although the call is refused. */
async function requireFactor(
  context: Context,
  { code, recoveryCode }: z.output<typeof request>,
  status: 'pending' | 'active',
): Promise<void> {
  const { database, now: at } = context
  const accountId = personOf(context).account.id
  const isShown =
    code === undefined
      ? recoveryCode !== undefined && (await useRecoveryCode(context, { accountId, recoveryCode, at }))
      : await useTotp(context, { accountId, code, status, at })
  if (isShown) return
  if ((await mfaStatus(database, accountId)).status !== status)
    throw new Failure(
      'conflict',
      status === 'pending' ? 'No enrollment was begun.' : 'No second factor is active.',
      {
        hint: 'POST /api/security/mfa {"action":"status"} tells how far it has come.',
      },
    )
  if (await recordFailedFactor(database, { accountId, at })) {
    const after = { reason: 'second_factor' }
    await recordChange(context, {
      as: 'system',
      action: 'account.locked',
      object: { kind: 'account', id: accountId },
      after,
    })
    throw lockedNow()
  }
  throw new Failure('step_up_required', 'The code is wrong or was used before.', {
    isCommitted: true,
    hint: 'Wait for the authenticator’s next code. Ten wrong codes in an hour lock the account.',
  })
}
