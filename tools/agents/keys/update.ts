import { z } from 'zod'
import { type Directions, looserMembers } from '../../../policies/directions.ts'
import { loosenings } from '../../../policies/loosening.ts'
import { spendPolicy, storedPolicy } from '../../../policies/policy.ts'
import { isScope } from '../../../policies/scopes.ts'
import { agentView, viewAgent } from '../../../src/books/spending/agent-view.ts'
import type { AccessKey } from '../../../src/core/base/principal.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { amountMismatch, decimalAmount, toDecimal, toMoney } from '../../../src/core/money/money.ts'
import { type Context, requirePerson } from '../../../src/kernel/context.ts'
import { requireProofToLoosen } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { grantMembers, keyExpiry, requirePolicy } from '../../../src/people/identity/keys/key-grant.ts'
import { keyState } from '../../../src/people/identity/keys/key-state.ts'
import {
  changeKey,
  findOwnKey,
  type KeyChange,
  ownedKinds,
  revokeKey,
} from '../../../src/people/identity/keys/owned-keys.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { purseKey } from '../../../src/rails/buying/authorization.ts'
import { DEFAULT_CHUNK, findPurse, setChunk } from '../../../src/rails/buying/store.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'
import { findWallet } from '../../../src/rails/wallets/store.ts'

/** A purse is spent from without a signature of its owner, so it never holds much. */
const MAX_CHUNK = 1_000_000_000n

function isChunk(text: string): boolean {
  return (
    text === '0' || (amountMismatch(text, 'USDC') === undefined && toMoney('USDC', text).units <= MAX_CHUNK)
  )
}

const change = z
  .strictObject({
    id: z.string().max(64).describe('`agentId`: `key_…`'),
    name: grantMembers.name.optional(),
    status: z
      .enum(['active', 'paused', 'revoked'])
      .optional()
      .describe('New state: `paused` stops every spend at once, `active` resumes, `revoked` is permanent.'),
    scopes: grantMembers.scopes.optional(),
    policy: spendPolicy.nullable().optional().describe('Complete new spend policy; null removes it.'),
    expectedVersion: z
      .int32()
      .min(0)
      .optional()
      .describe(
        '`policyVersion` that the change was made from. If the policy has another version by now, nothing changes: 409 `conflict`. Absent: any version.',
      ),
    expiresAt: z.iso
      .datetime()
      .nullable()
      .optional()
      .describe('When the key expires, ISO 8601 UTC; null: never.'),
    purse: z
      .strictObject({
        chunk: z
          .union([z.literal('0'), z.literal(0).transform(() => '0' as const), decimalAmount])
          .refine(isChunk, 'must be from 0 to 1000, with at most 6 fraction digits')
          .describe(
            'Whole units of the asset that the wallet moves to the agent’s purse at a time, as a decimal; "1" by default, "0": only what a purchase needs.',
          ),
      })
      .optional()
      .describe('Purse from which the agent buys paid URLs.'),
  })
  .refine(
    ({ id: _, expectedVersion: __, ...changes }) => Object.keys(changes).length > 0,
    'must name a member to change',
  )

const directions: Directions<z.output<typeof change>> = {
  id: 'never',
  name: 'never',
  status: (before, after) => before === 'paused' && after === 'active',
  scopes: 'wider',
  policy: (before = null, after = null) => loosenings(before, after).length > 0,
  expectedVersion: 'never',
  expiresAt: 'later',
  purse: { chunk: 'higher' },
}

export default defineTool({
  name: 'agents.keys.update',
  title: 'Change an agent',
  summary: 'Change an agent’s policy, scopes, name or expiry, pause or resume it, or revoke it.',
  description:
    'Tightening takes effect from the next request on every instance. Loosening (a higher limit, a longer list, another scope, a fuller purse, resuming) needs a fresh second factor. Used budgets stay used. `conflict`: the policy changed after `expectedVersion`; read the agent again.',
  route: 'PATCH /api/agents/keys/{id}',
  who: 'person',
  effect: 'write',
  proof: 'loosening',
  stops: true,
  policies: 'both',
  input: change,
  loosens: directions,
  output: agentView,
  failures: ['not_found', 'conflict', 'step_up_required', 'mfa_enrollment_required'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q', status: 'paused' },
  run: async (context, input) => {
    const { database, now } = context
    const owned = { accountId: requirePerson(context).account.id, kinds: ownedKinds }
    const key = await findOwnKey(database, { ...owned, id: input.id, isLocked: true })
    if (key === undefined) throw new Failure('not_found', 'You have no such agent.')
    requireVersion(key, input.expectedVersion)
    if (input.status === 'revoked' || input.status === 'paused')
      context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, owned.accountId))
    if (input.status === 'revoked') {
      await revokeKey(database, { ...owned, id: key.id })
      const revoked = { ...key, status: 'revoked' as const }
      await sendSecurityNotice(context, { accountId: owned.accountId, notice: 'agent_revoked', at: now })
      await recordChange(context, toChange('key.revoked', key, revoked))
      return viewAgent(database, revoked, context.onCalendar(now))
    }
    const next = applyChange(key, input, now)
    const { purse } = input
    const before = (await findPurse(database, key.id))?.chunk ?? DEFAULT_CHUNK
    const chunk = purse === undefined ? before : purse.chunk === '0' ? 0n : toMoney('USDC', purse.chunk).units
    requireProofToLoosen(context, findLoosened(key, next, { before, after: chunk }))
    if (purse !== undefined) {
      const { address } = purseKey(context.settings.dataKey, key.id)
      const home = await findWallet(database, owned.accountId)
      if (home === undefined) throw new Failure('not_found', 'The account has no wallet.')
      const opened = { id: key.id, accountId: owned.accountId, address, home, chunk, at: now }
      await setChunk({ database, dataKey: context.settings.dataKey }, opened)
    }
    const after = await changeKey(database, key, next)
    const change = toChange('key.updated', key, after)
    await recordChange(
      context,
      purse === undefined ? change : { ...change, after: { key: keyState(after), purse } },
    )
    return viewAgent(database, after, context.onCalendar(now))
  },
})

/** Keeps one editor from undoing another's change. @throws Failure `conflict`. */
function requireVersion({ policyVersion }: AccessKey, expected: number | undefined): void {
  if (expected === undefined || expected === policyVersion) return
  throw new Failure(
    'conflict',
    `The policy has version ${policyVersion} by now; the change was made from version ${expected}.`,
    { hint: 'Read GET /api/agents/keys/{id} again and repeat the change on what it answers.' },
  )
}

function toChange(action: string, before: AccessKey, after: AccessKey) {
  return { action, object: { kind: 'key', id: before.id }, before: keyState(before), after: keyState(after) }
}

/** Builds the changed key. @throws Failure `invalid_request` when it could spend without a policy. */
function applyChange(key: AccessKey, input: z.output<typeof change>, now: Context['now']): KeyChange {
  const next = {
    name: input.name ?? key.name,
    status:
      input.status === 'paused' || (input.status === undefined && key.status === 'paused')
        ? ('paused' as const)
        : ('active' as const),
    scopes: input.scopes ?? key.scopes.filter(isScope),
    policy: input.policy === undefined ? storedPolicy.nullable().parse(key.policy ?? null) : input.policy,
    expiresAt:
      input.expiresAt === undefined
        ? key.expiresAt
        : keyExpiry({ expiresAt: input.expiresAt ?? undefined }, now),
    at: now,
  }
  requirePolicy(next)
  return next
}

/** Lists the members that the change loosens. @param chunks of the purse before and after it, in smallest units. */
function findLoosened(
  key: AccessKey,
  next: KeyChange,
  chunks: { readonly before: bigint; readonly after: bigint },
): readonly string[] {
  const viewPurse = (units: bigint) => ({ chunk: toDecimal({ asset: 'USDC', units }) })
  const before = {
    status: key.status,
    scopes: key.scopes.filter(isScope),
    policy: storedPolicy.nullable().parse(key.policy ?? null),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    purse: viewPurse(chunks.before),
  }
  const after = {
    ...next,
    scopes: [...next.scopes],
    expiresAt: next.expiresAt?.toISOString() ?? null,
    purse: viewPurse(chunks.after),
  }
  return looserMembers(directions, before, after)
}
