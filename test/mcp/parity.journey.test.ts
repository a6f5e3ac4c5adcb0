/** Every tool with its own example, over REST and both MCP eras: the same answer, or the same problem. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tools } from '../../tools/index.ts'
import { openScene, type Scene } from './scene.ts'
import { type OperationResult, openTransports, type Transports } from './ways.ts'

/** Prices, rates and equities change between calls: only their shape is compared. */
const moving = new Set(['investing_portfolio', 'investing_order', 'swaps_execute', 'swaps_quote', 'x402_fx'])

/** Ids and times that differ in each call, inside a text or as a whole. */
const changing: readonly [RegExp, string][] = [
  [/\b(acct|key|card|va|ord|tx|quote|pay|appr|dec|kyc|tr|evt|req|swp)_[0-9a-hjkmnp-tv-z]{26}\b/g, '$1_…'],
  [/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'time'],
  [/0x[0-9a-f]{64}\b/g, 'hash'],
  [/\/pay\/[\w-]{24}/g, '/pay/…'],
]
/** Members that a bank or a card network generates, that count calls or seconds, or that name routes or tools. */
const madeUp = new Set([
  'instance',
  'requestId',
  'reference',
  'last4',
  'iban',
  'accountNumber',
  'vpa',
  'hint',
  'ageSec',
  // The secret of a new bearer.
  'key',
])

function mask(value: unknown, isMoving: boolean): unknown {
  if (typeof value === 'string') {
    const text = changing.reduce((soFar, [from, to]) => soFar.replaceAll(from, to), value)
    return isMoving && /^-?\d+(\.\d+)?$/.test(text) ? 'number' : text
  }
  if (typeof value === 'number' && isMoving) return 'number'
  if (Array.isArray(value)) {
    const members = value.map((member) => mask(member, isMoving))
    return isMoving ? [...new Set(members.map((member) => JSON.stringify(member)))].slice(0, 1) : members
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      madeUp.has(name) ? 'made up' : mask(member, isMoving),
    ]),
  )
}

describe('each tool over REST, MCP of 2025 and MCP of 2026', () => {
  let scene: Scene
  let ways: Transports
  let cardId = ''
  beforeAll(async () => {
    scene = await openScene()
    ways = await openTransports(scene)
    const { cards } = z
      .object({ cards: z.array(z.object({ id: z.string() })) })
      .parse((await ways.rest('cards_list', {})).body)
    cardId = cards[0]?.id ?? ''
  }, 60_000)
  afterAll(async () => {
    await ways?.close()
    await scene?.close()
  })

  const served = tools.filter(({ mcp }) => mcp)
  const toName = ({ name }: { name: string }) => name.replaceAll('.', '_')

  it('is covered by the lists below', async () => {
    const { tools: listed } = await ways.modern.listTools()
    expect(listed.map(({ name }) => name).toSorted()).toEqual(served.map(toName).toSorted())
  })

  it.each(served.map((tool) => [toName(tool), tool] as const))(
    '%s',
    async (name, { effect, example, isSold }) => {
      const given = z.record(z.string(), z.unknown()).parse(example ?? {})
      const input = 'cardId' in given ? { ...given, cardId } : given
      const nameKey = effect === 'spend' ? (way: string) => `parity-${name}-${way}` : undefined
      // REST answers with a challenge for tools sold to anonymous callers: there is no charge to a key to compare with.
      const results = (await ways.everywhere(name, () => input, nameKey)).slice(isSold ? 1 : 0)
      const seen = results.map(({ isError, body, replayed }: OperationResult) => ({
        isError,
        replayed,
        body: mask(body, moving.has(name)),
      }))
      for (const other of seen.slice(1)) expect(other).toEqual(seen[0])
      // An undeclared code would be equal over all three transports, too.
      if (seen[0]?.isError === true)
        expect([results[0]?.body.code, results[0]?.body.detail]).toEqual([expected[name], expect.anything()])
      else expect(expected[name]).toBeUndefined()
    },
  )

  /** Examples that reference missing objects, or that this key may not call. */
  const expected: Record<string, string> = {
    agents_delegations_revoke: 'not_found',
    approvals_get: 'not_found',
    approvals_withdraw: 'not_found',
    banking_payouts_create: 'not_found',
    cards_cancel: 'not_found',
    channels_close: 'not_found',
    recourse_get: 'not_found',
    requests_get: 'not_found',
    requests_remove: 'not_found',
    recourse_open: 'not_found',
    schedules_create: 'approval_required',
    schedules_get: 'not_found',
    schedules_remove: 'not_found',
    schedules_update: 'not_found',
    banking_payouts_get: 'not_found',
    banking_payouts_quote: 'not_found',
    transfers_gasless: 'authorization_rejected',
    wallets_transfers_get: 'not_found',
    swaps_orders_get: 'not_found',
    investing_orders_cancel: 'not_found',
    compliance_travel_rules_get: 'not_found',
    x402_payments_get: 'not_found',
    compliance_travel_rule: 'kyc_required',
    cards_transactions: 'not_found',
    purchases_get: 'not_found',
    purchases_evidence: 'not_found',
    // The example’s host does not exist.
    purchases_buy: 'seller_failed',
    purchases_quote: 'seller_failed',
    // Identity data comes from a person.
    compliance_kyc: 'insufficient_scope',
  }

  const lenient = ['compliance_kyc', 'compliance_travel_rule']
  const strict = served.map(toName).filter((name) => !lenient.includes(name))
  it.each(strict)('%s rejects an unknown member by name', async (name) => {
    const nameKey = (way: string) => `unknown-${name}-${way}`
    const isSpend = served.some((tool) => toName(tool) === name && tool.effect === 'spend')
    const results = await ways.everywhere(
      name,
      () => ({ id: 'x', wrong: '1' }),
      isSpend ? nameKey : undefined,
    )
    for (const { isError, body } of results) {
      expect([name, isError, body.code]).toEqual([name, true, 'invalid_request'])
      expect(JSON.stringify(body.issues)).toContain('wrong')
    }
  })
})
