import { z } from 'zod'
import { spendPolicy } from '../../policies/policy.ts'
import { delegationView, viewDelegation } from '../../src/books/spending/delegation-view.ts'
import type { AccessKey } from '../../src/core/base/principal.ts'
import { taskLabel } from '../../src/core/base/task-label.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { newApiKey } from '../../src/people/identity/keys/api-keys.ts'
import { delegateKey } from '../../src/people/identity/keys/delegations.ts'
import {
  agentPublicKey,
  grantMembers,
  keyExpiry,
  refineGrant,
} from '../../src/people/identity/keys/key-grant.ts'
import { keyState } from '../../src/people/identity/keys/key-state.ts'
import { findOwnKey, ownedKinds } from '../../src/people/identity/keys/owned-keys.ts'

const delegation = z
  .strictObject({
    name: grantMembers.name,
    scopes: grantMembers.scopes,
    policy: z
      .looseObject({})
      .describe(
        'Spend policy as `context` shows yours, such as {"perTransaction":{"max":"1"},"dailyBudget":{"max":"2"},"totalBudget":{"max":"2"},"categories":{"allow":["transfer"]}}. No member may be wider than yours; what you leave out holds as in yours.',
      )
      .pipe(spendPolicy)
      .optional(),
    expiresAt: z.iso.datetime().describe('When it ends, ISO 8601 UTC; not after the key above.'),
    parentId: z
      .string()
      .max(64)
      .optional()
      .describe('`key_…` whose budget is shared. A key shares its own; its owner must name one.'),
    publicKey: agentPublicKey
      .optional()
      .describe('Ed25519 public key of the new agent, which signs its requests.'),
    bearer: z
      .literal(true)
      .optional()
      .describe('Without `publicKey`: answers with `key`, a secret to send as "Authorization: Bearer …".'),
    earmark: z
      .boolean()
      .default(false)
      .describe(
        'Sets `policy.totalBudget.max` aside: nobody else above can spend it. What is left returns at the end.',
      ),
    task: taskLabel.optional().describe('Label of all its spends.'),
  })
  .superRefine((input, context) => {
    refineGrant(input, context)
    if ((input.publicKey === undefined) === (input.bearer === undefined))
      context.addIssue({
        code: 'custom',
        path: ['publicKey'],
        message: 'or `bearer` is required, one of them',
      })
    if (input.earmark && input.policy?.totalBudget === undefined)
      context.addIssue({
        code: 'custom',
        path: ['policy', 'totalBudget'],
        message: 'is required with `earmark`: its `max` is set aside',
      })
  })

export default defineTool({
  name: 'agents.delegate',
  title: 'Share a budget with another agent',
  summary: 'Make a key below your own that can spend a part of your budget, and no more.',
  description:
    'Every spend of it is judged by its policy and by yours, and counts on both. Give it only what its task needs. Pausing or revoking you stops it too. `policy_denied`: less is left than the earmark.',
  route: 'POST /api/agents/delegations',
  who: 'account',
  scopes: ['agents:delegate'],
  effect: 'write',
  proof: 'step-up',
  mcp: true,
  shownOnce: ['key'],
  restOnly: ['parentId', 'publicKey'],
  policies: 'both',
  input: delegation,
  output: delegationView.extend({
    key: z.string().nullable().optional().describe('Secret of a bearer, shown once.'),
  }),
  failures: ['conflict', 'not_found', 'policy_denied'],
  example: {
    name: 'Research helper',
    scopes: ['wallets:transfer'],
    policy: {
      perTransaction: { max: '1' },
      dailyBudget: { max: '2' },
      totalBudget: { max: '2' },
      categories: { allow: ['transfer'] },
    },
    expiresAt: '2099-01-01T00:00:00Z',
    bearer: true,
  },
  run: async (context, { parentId, publicKey, earmark, task, policy = null, ...input }) => {
    const { account } = requireCaller(context)
    const parent = await findParent(context, parentId)
    const secret = newApiKey(context.settings.mode)
    const key = await delegateKey(context, {
      accountId: account.id,
      parent,
      name: input.name,
      scopes: input.scopes,
      policy,
      expiresAt: keyExpiry(input, context.now) ?? context.now,
      credential: publicKey === undefined ? { secret } : { publicKey },
      isEarmarked: earmark,
      task: task ?? parent.delegation?.task ?? null,
      at: context.now,
    })
    const view = await viewDelegation(context.database, key, context.now)
    await recordChange(context, {
      action: 'key.delegated',
      object: { kind: 'key', id: key.id },
      after: keyState(key),
    })
    return publicKey === undefined ? { ...view, key: secret } : view
  },
})

/** @throws Failure `not_found`, `invalid_request`. */
async function findParent(context: Context, parentId: string | undefined): Promise<AccessKey> {
  const caller = requireCaller(context)
  if (caller.kind === 'key') {
    if (parentId === undefined || parentId === caller.key.id) return caller.key
    throw new Failure('not_found', 'You have no such key: a key shares its own budget.')
  }
  if (parentId === undefined)
    throw new Failure('invalid_request', 'parentId: is required', {
      issues: [{ path: 'parentId', message: 'is required: the agent whose budget is shared' }],
    })
  const owned = { accountId: caller.account.id, kinds: ownedKinds, isLocked: false }
  const parent = await findOwnKey(context.database, { ...owned, id: parentId })
  if (parent === undefined) throw new Failure('not_found', 'You have no such agent.')
  return parent
}
