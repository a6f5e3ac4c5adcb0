/** What each role of a person may do, from the record of every operation. The snapshot changes with each new operation. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { includesRole, memberRoles } from '../../src/core/base/principal.ts'
import { requireScope } from '../../src/kernel/gates/scope.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { tools } from '../../tools/index.ts'
import { noon } from '../kernel/scene.ts'

const ofPeople = tools.filter(({ who }) => who === 'person' || who === 'account')

function mayDo(tool: (typeof tools)[number], role: (typeof memberRoles)[number]): boolean {
  const session = { id: 'sess_1', createdAt: noon, isDevice: false, steppedUpAt: null } as const
  const account = { id: 'acct_1', role: 'user', status: 'active', guest: false, displayName: 'Ada' } as const
  try {
    requireScope(tool, {
      kind: 'session',
      account: { ...account, kycLevel: 'none', mfaEnrolled: false, createdAt: noon },
      person: { id: 'acct_2', status: 'active', role },
      session: { ...session, tokenHolder: 'client', tokenExpiresAt: noon, expiresAt: noon },
    })
    return true
  } catch (error) {
    expect(error).toMatchObject({ code: 'insufficient_role' })
    return false
  }
}

it('matches the snapshot, operation by operation', async () => {
  const rows = [...ofPeople]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map((tool) => `${tool.name}: ${memberRoles.filter((role) => mayDo(tool, role)).join(' ')}`)
  await expect(rows.join('\n')).toMatchFileSnapshot('roles.snapshot.txt')
})

it('gives each role what the ones before it may do', () => {
  for (const tool of ofPeople) {
    const roles = memberRoles.filter((role) => mayDo(tool, role))
    expect(memberRoles.slice(-roles.length)).toEqual(roles)
    expect(includesRole('owner', tool.role)).toBe(true)
  }
})

it('lets none but owners write or spend, but where the record says why', () => {
  const lower = ofPeople.filter(({ effect, role }) => effect !== 'read' && role !== 'owner')
  expect(lower.map(({ name }) => name).sort()).toEqual([
    'approvals.decide',
    'auth.devices.allow',
    'auth.devices.reject',
    'auth.profile',
    'auth.sessions.revoke',
    'people.invitations.accept',
    'people.remove',
    'security.lock',
    'security.mfa',
    'security.passkeys.remove',
  ])
})

it('denies a new operation by default to whoever may not read everything', () => {
  const made = (effect: 'read' | 'write') =>
    defineTool({
      name: 'some.new',
      title: 'New',
      summary: 'New.',
      route: 'POST /api/some/new',
      who: 'person',
      ...(effect === 'read' ? { effect } : { effect, proof: 'none' as const }),
      input: z.strictObject({}),
      output: z.strictObject({}),
      failures: [],
      run: async () => ({}),
    })
  expect(memberRoles.map((role) => mayDo(made('read'), role))).toEqual([false, true, true, true])
  expect(memberRoles.map((role) => mayDo(made('write'), role))).toEqual([false, false, false, true])
})
