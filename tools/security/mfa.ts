import { renderSVG } from 'uqr'
import { z } from 'zod'
import { STEP_UP_SECONDS } from '../../policies/step-up.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requirePerson } from '../../src/kernel/context.ts'
import { requireRecentProof } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { lockPersonRow, recordFailedFactor } from '../../src/people/identity/locks.ts'
import {
  activate,
  beginEnrollment,
  disable,
  type MfaStatus,
  mfaStatus,
  useRecoveryCode,
  useTotp,
} from '../../src/people/identity/mfa.ts'
import { sendSecurityNotice } from '../../src/people/identity/security-notices.ts'
import { endStepUps, stepUpSession } from '../../src/people/identity/store.ts'

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
        '`enroll` returns a new secret, `activate` makes it the second factor, `verify` steps up this session for five minutes, `disable` removes the factor.',
      ),
    code: z
      .string()
      .regex(/^\d{6}$/, 'must be six digits')
      .optional()
      .describe('Six-digit code of the authenticator. Each code works once.'),
    recoveryCode: z
      .string()
      .min(16)
      .max(32)
      .optional()
      .describe('Recovery code, instead of `code` for `verify` and `disable`. Each works once.'),
  })
  .superRefine((input, context) => {
    const accepted: readonly string[] = needs[input.action]
    const given = (['code', 'recoveryCode'] as const).filter((name) => input[name] !== undefined)
    for (const name of given.filter((member) => !accepted.includes(member)))
      context.addIssue({ code: 'custom', path: [name], message: `is not allowed with ${input.action}` })
    if (accepted.length > 0 && given.length !== 1)
      context.addIssue({
        code: 'custom',
        path: ['code'],
        message: `exactly one of ${accepted.join(', ')} is required`,
      })
  })

export default defineTool({
  name: 'security.mfa',
  title: 'Second factor',
  summary: 'Enroll, activate, verify or disable the account’s second factor (TOTP), or read its state.',
  description:
    'The only operation that changes second factors. In production, `enroll` and `activate` need a sign-in within the last five minutes. The owner is notified of each change by mail. Privileged operations fail with 401 step_up_required unless `verify` was called on the same session within the last five minutes. Ten wrong codes in an hour lock the account.',
  route: 'POST /api/security/mfa',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'conditional',
  stops: true,
  shownOnce: ['otpauthUri', 'qr', 'recoveryCodes'],
  input: request,
  output: z.strictObject({
    status: z.enum(['none', 'pending', 'active']).describe('State of the second factor.'),
    enrolled: z.boolean().describe('True if the second factor is active.'),
    recoveryCodesLeft: z.int().describe('Number of unused recovery codes.'),
    steppedUpUntil: z
      .string()
      .nullable()
      .describe('When the step-up of this session expires, ISO 8601 UTC; null without one.'),
    otpauthUri: z
      .string()
      .nullable()
      .optional()
      .describe('After `enroll`, once: otpauth URI for an authenticator.'),
    qr: z
      .string()
      .nullable()
      .optional()
      .describe('After `enroll`, once: the URI as a QR code, an SVG data URI.'),
    recoveryCodes: z
      .array(z.string())
      .nullable()
      .optional()
      .describe('After `activate`, once: new recovery codes.'),
  }),
  failures: ['step_up_required', 'conflict'],
  example: { action: 'status' },
  run: async (context, input) => {
    if (input.action === 'status') return state(context)
    // A stolen old session must not be able to add its own second factor to the account.
    if (input.action === 'enroll' || input.action === 'activate') requireRecentProof(context)
    // The row lock serializes attempts, so the tenth wrong one stops all later ones.
    if ((await lockPersonRow(context.database, requirePerson(context).person.id)) === 'locked')
      throw buildLockedFailure()
    switch (input.action) {
      case 'enroll':
        return enroll(context)
      case 'activate': {
        await requireFactor(context, input, 'pending')
        const { person, session } = requirePerson(context)
        const recoveryCodes = await activate(context, { accountId: person.id, at: context.now })
        await stepUpSession(context.database, session.id, context.now)
        await sendSecurityNotice(context, {
          accountId: person.id,
          notice: 'factor_activated',
          at: context.now,
        })
        await recordFactor(context, 'factor.added')
        return { ...(await state(context, context.now)), recoveryCodes: [...recoveryCodes] }
      }
      case 'verify': {
        await requireFactor(context, input, 'active')
        await stepUpSession(context.database, requirePerson(context).session.id, context.now)
        return state(context, context.now)
      }
      case 'disable': {
        await requireFactor(context, input, 'active')
        const { id: accountId } = requirePerson(context).person
        await disable(context.database, accountId)
        // Earlier step-ups with the removed factor are no longer valid.
        await endStepUps(context.database, accountId)
        await sendSecurityNotice(context, { accountId, notice: 'factor_removed', at: context.now })
        await recordFactor(context, 'factor.removed')
        return state(context, null)
      }
    }
  },
})

function recordFactor(context: Context, action: 'factor.added' | 'factor.removed'): Promise<void> {
  return recordChange(context, { action, object: { kind: 'totp', id: requirePerson(context).person.id } })
}

function buildLockedFailure(): Failure {
  return new Failure('account_locked', 'Too many wrong codes: the account is locked.', {
    isCommitted: true,
    hint: 'Unlock it through POST /api/auth/recovery/start.',
  })
}

/** @param steppedUpAt step-up time, if this call changed it. */
async function state(context: Context, steppedUpAt = requirePerson(context).session.steppedUpAt) {
  const found: MfaStatus = await mfaStatus(context.database, requirePerson(context).person.id)
  const until = steppedUpAt === null ? null : new Date(steppedUpAt.getTime() + STEP_UP_SECONDS * 1000)
  const isFresh = found.status === 'active' && until !== null && until > context.now
  return {
    ...found,
    enrolled: found.status === 'active',
    steppedUpUntil: isFresh ? until.toISOString() : null,
  }
}

async function enroll(context: Context) {
  const { account, person } = requirePerson(context)
  const { database, now: at } = context
  // Only the first enrollment is notified; replacing a pending one is not.
  const isFirst = (await mfaStatus(database, person.id)).status === 'none'
  const secret = await beginEnrollment(context, { accountId: person.id, at })
  if (isFirst) await sendSecurityNotice(context, { accountId: person.id, notice: 'factor_begun', at })
  const { generateURI } = await import('otplib')
  const otpauthUri = generateURI({ issuer: 'Bursar', label: account.displayName, secret })
  const qr = `data:image/svg+xml;base64,${Buffer.from(renderSVG(otpauthUri)).toString('base64')}`
  return { ...(await state(context)), otpauthUri, qr }
}

/** Verifies a code, or records the failed attempt, which is committed although the call fails. */
async function requireFactor(
  context: Context,
  { code, recoveryCode }: z.output<typeof request>,
  status: 'pending' | 'active',
): Promise<void> {
  const { database, now: at } = context
  const accountId = requirePerson(context).person.id
  const isShown =
    code === undefined
      ? recoveryCode !== undefined && (await useRecoveryCode(context, { accountId, recoveryCode, at }))
      : await useTotp(context, { accountId, code, status, at })
  if (isShown) return
  if ((await mfaStatus(database, accountId)).status !== status)
    throw new Failure(
      'conflict',
      status === 'pending' ? 'No enrollment was started.' : 'No second factor is active.',
      {
        hint: 'POST /api/security/mfa {"action":"status"} returns the state of the second factor.',
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
    throw buildLockedFailure()
  }
  throw new Failure('step_up_required', 'The code is wrong or was used before.', {
    isCommitted: true,
    hint: 'Wait for the authenticator’s next code. Ten wrong codes in an hour lock the account.',
  })
}
