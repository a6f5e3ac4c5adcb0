/**
 * Loosening over real HTTP: each member with a declared direction is loosened and tightened by a session without its second factor.
 * The members come from the declarations; one without an example fails.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { policyDirections } from '../../policies/loosening.ts'
import { tools } from '../../tools/index.ts'
import { newAgent } from '../journeys/agent.ts'
import { sharedGateway } from '../journeys/gateway.ts'
import { enrollMfa, newMailbox, type Person, signInByEmail } from '../journeys/people.ts'
import { listDirections } from './declared-members.ts'

const [ada, ben] = ['a', 'b'].map((digit) => `0x${digit.repeat(40)}`)
const [near, far] = ['2031-01-01T00:00:00.000Z', '2031-02-01T00:00:00.000Z']
const day = { days: ['mon'], start: '09:00', end: '17:00', tz: 'UTC' }

/** A policy with every member. */
const policy = {
  perTransaction: { max: '10' },
  dailyBudget: { max: '100', maxCount: 10 },
  weeklyBudget: { max: '200', maxCount: 20 },
  monthlyBudget: { max: '300', maxCount: 30 },
  totalBudget: { max: '900', maxCount: 90 },
  repeatLimit: { count: 5, perSec: 600 },
  categories: { allow: ['transfer'] },
  counterparties: { allow: [ada], deny: [ben], newPayeeCooldownSec: 60 },
  sellers: {
    allow: ['https://a.example'],
    deny: ['https://b.example'],
    minDelivered: { of: 20, ratio: 0.9 },
    unknown: 'ask',
  },
  assets: ['USDC'],
  chains: ['base-sepolia'],
  mcc: { allow: ['5411'], deny: ['7995'] },
  symbols: { allow: ['VTI'], deny: ['TSLA'] },
  timeWindows: [day],
  approval: { above: '5' },
  notBefore: '2026-01-02T00:00:00Z',
  expiresAt: '2031-01-01T00:00:00Z',
}

/** Looser values of each member of that policy. */
const looserPolicies: Readonly<Record<string, readonly unknown[]>> = {
  'perTransaction.max': ['10.01', 100],
  'dailyBudget.max': ['100.01'],
  'dailyBudget.maxCount': [11, undefined],
  'weeklyBudget.max': ['200.01'],
  'weeklyBudget.maxCount': [21, undefined],
  'monthlyBudget.max': ['300.01'],
  'monthlyBudget.maxCount': [31, undefined],
  'totalBudget.max': ['900.01'],
  'totalBudget.maxCount': [91, undefined],
  'repeatLimit.count': [6],
  'repeatLimit.perSec': [599],
  repeatLimit: [undefined],
  'categories.allow': [['transfer', 'x402'], ['card']],
  'counterparties.allow': [[ada, ben], [ben], undefined],
  'counterparties.deny': [[], [ada], undefined],
  'counterparties.newPayeeCooldownSec': [59, undefined],
  'sellers.allow': [['https://a.example', 'https://c.example'], ['*.a.example'], undefined],
  'sellers.deny': [[], ['https://c.example'], undefined],
  'sellers.minDelivered.of': [19, 21],
  'sellers.minDelivered.ratio': [0.89],
  'sellers.minDelivered': [undefined],
  'sellers.unknown': ['allow', undefined],
  assets: [['USDC', 'EURC'], undefined],
  chains: [['base-sepolia', 'base'], undefined],
  'mcc.allow': [['5411', '5812'], undefined],
  'mcc.deny': [[], undefined],
  'symbols.allow': [['VTI', 'TSLA'], undefined],
  'symbols.deny': [[], undefined],
  timeWindows: [[{ ...day, end: '17:01' }], [day, { ...day, days: ['sun'] }], undefined],
  'approval.above': ['5.01'],
  approval: [undefined],
  notBefore: ['2026-01-01T00:00:00Z', undefined],
  expiresAt: ['2031-01-02T00:00:00Z', undefined],
}

/** A value of a member, and looser ones. */
type Case = readonly [tight: unknown, ...loose: unknown[]]

const cards: Readonly<Record<string, Case>> = {
  'limits.daily': ['10', '10.01', null],
  'limits.perPurchase': ['10', '10.01', null],
  'channels.ecommerce': [false, true],
  'channels.contactless': [false, true],
  'channels.atm': [false, true],
  'channels.magstripe': [false, true],
  priority: [['USDC'], ['USDC', 'USD'], ['USD']],
}

interface Scene {
  readonly fresh: Person
  readonly stale: Person
  readonly keyId: string
  readonly developerKeyId: string
  readonly cardId: string
  readonly scheduleId: string
}

/** Operations with the members that name their object, and cases by member. */
const operations = (
  scene: Scene,
): Readonly<Record<string, { ids: object; cases: Record<string, Case> }>> => ({
  'agents.keys.update': {
    ids: { id: scene.keyId },
    cases: {
      status: ['paused', 'active'],
      scopes: [['wallets:read'], ['wallets:read', 'wallets:transfer']],
      policy: [policy],
      expiresAt: [near, far, null],
      'purse.chunk': ['0', '0.000001', '1000'],
    },
  },
  'agents.policy.set': {
    ids: { dailyBudget: { max: '100' } },
    cases: {
      'dailyBudget.max': ['100', '100.01'],
      dailyBudget: [{ max: '100' }, null],
      'weeklyBudget.max': ['100', '100.01'],
      weeklyBudget: [{ max: '100' }, null],
      'monthlyBudget.max': ['100', '100.01'],
      monthlyBudget: [{ max: '100' }, null],
      refundsRefill: [false, true],
      approvals: [[{ above: '5', count: 1 }], [{ above: '6', count: 1 }], []],
    },
  },
  'auth.profile': { ids: {}, cases: { displayName: ['Ada', 'Ada Lovelace'] } },
  'cards.settings': { ids: { cardId: scene.cardId }, cases: { ...cards, freeze: [true, false] } },
  'cards.update': {
    ids: { cardId: scene.cardId },
    cases: {
      ...cards,
      'mcc.allow': [['5411'], ['5411', '5812'], null],
      'mcc.deny': [['7995'], [], ['5812']],
      agentId: [scene.keyId, null],
    },
  },
  'compliance.blocked_addresses.set': { ids: {}, cases: { addresses: [[ada], [], [ben]] } },
  'developer.keys.update': { ids: { id: scene.developerKeyId }, cases: { status: ['paused', 'active'] } },
  'notifications.settings.update': { ids: {}, cases: { approvals: ['immediately', 'daily', 'off'] } },
  'schedules.update': { ids: { id: scene.scheduleId }, cases: { status: ['paused', 'active'] } },
})

const loosening = tools.filter(({ proof }) => proof === 'loosening')

/** An object with one member, by its path, replaced; undefined removes it. */
function withMember(object: object, path: string, value: unknown): Record<string, unknown> {
  const [name = '', ...inner] = path.split('.')
  const member = Reflect.get(object, name)
  const replaced =
    inner.length === 0
      ? value
      : withMember(typeof member === 'object' ? { ...member } : {}, inner.join('.'), value)
  return JSON.parse(JSON.stringify({ ...object, [name]: replaced }))
}

describe('loosening', () => {
  const origin = sharedGateway()
  let scene: Scene
  // A session has a budget of changes a minute, so each operation has sessions of its own.
  beforeEach(async () => {
    const mailbox = newMailbox('loosening')
    const fresh = await signInByEmail(origin, mailbox)
    await enrollMfa(fresh)
    const createObject = async (path: string, body: object, name: string) => {
      const answer = await fresh.send('POST', path, body)
      return z.string().parse(answer.body[name])
    }
    const { jwk } = await newAgent()
    scene = {
      fresh,
      stale: await signInByEmail(origin, mailbox),
      keyId: await createObject(
        '/api/agents/keys',
        { name: 'Agent', publicKey: jwk, scopes: [], policy },
        'agentId',
      ),
      developerKeyId: await createObject(
        '/api/developer/keys',
        { name: 'Key', scopes: ['wallets:read'] },
        'id',
      ),
      cardId: await createObject('/api/cards', {}, 'id'),
      scheduleId: await createObject(
        '/api/schedules',
        {
          operation: 'wallets.transfer',
          input: { destination: ada, amount: '1', token: 'USDC' },
          every: { unit: 'month' },
        },
        'scheduleId',
      ),
    }
  })

  it.each(loosening.map((tool) => [tool.name, tool] as const))(
    '%s asks for a second factor for whatever loosens, and for nothing else',
    { timeout: 60_000 },
    async (name, tool) => {
      const operation = operations(scene)[name]
      if (operation === undefined) throw new Error(`${name} has no examples`)
      const { ids, cases } = operation
      const judged = [...listDirections(tool.loosens ?? {})].flatMap(([path, direction]) =>
        direction === 'never' ? [] : [path],
      )
      const free = new Set(
        [...listDirections(tool.loosens ?? {})].flatMap(([path, to]) => (to === 'never' ? [path] : [])),
      )
      expect(judged.filter((path) => cases[path] === undefined)).toEqual([])
      const [method = '', template = ''] = tool.route.split(' ')
      const change = async (person: Person, path: string, value: unknown) => {
        const { id, ...named } = z.looseObject({ id: z.string().optional() }).parse(ids)
        const body = withMember(named, path, value)
        const answer = await person.send(method, template.replace('{id}', id ?? ''), body)
        return `${answer.status} ${answer.body.code ?? 'changed'}`
      }
      const wrong: unknown[] = []
      const expectChange = async (expected: string, person: Person, path: string, value: unknown) => {
        const answer = await change(person, path, value)
        if (answer !== expected) wrong.push([path, value, answer, `expected ${expected}`])
      }
      for (const [path, [tight, ...loose]] of Object.entries(cases))
        for (const value of loose) {
          await expectChange('200 changed', scene.fresh, path, tight)
          const isFree = free.has(path)
          await expectChange(isFree ? '200 changed' : '401 step_up_required', scene.stale, path, value)
          await expectChange('200 changed', scene.stale, path, tight)
          await expectChange('200 changed', scene.fresh, path, value)
          // A value that is neither tighter nor looser, such as another list, is loosening in both directions.
          const back = await change(scene.stale, path, tight)
          if (back !== '200 changed' && !Array.isArray(value)) wrong.push([path, tight, back])
        }
      expect(wrong).toEqual([])
    },
  )

  it('loosening of every member of a policy needs a second factor', { timeout: 60_000 }, async () => {
    const judged = [...listDirections({ ...policyDirections })].flatMap(([path, direction]) =>
      direction === 'never' ? [] : [path],
    )
    expect(judged.filter((path) => looserPolicies[path] === undefined)).toEqual([])
    const set = async (person: Person, changed: unknown) => {
      const answer = await person.send('PATCH', `/api/agents/keys/${scene.keyId}`, { policy: changed })
      return `${answer.status} ${answer.body.code ?? 'changed'}`
    }
    expect(await set(scene.fresh, policy)).toBe('200 changed')
    const wrong: unknown[] = []
    for (const [path, values] of Object.entries(looserPolicies))
      for (const value of values) {
        const answer = await set(scene.stale, withMember(policy, path, value))
        if (answer !== '401 step_up_required') wrong.push([path, value, answer])
      }
    expect(wrong).toEqual([])
    expect(await set(scene.stale, null)).toBe('200 changed')
    expect(await set(scene.stale, policy)).toBe('401 step_up_required')
  })
})
