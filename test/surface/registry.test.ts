/** The registry against the files, and the surfaces against the registry. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { filesBelow } from '../files.ts'

const toName = (file: string) =>
  file
    .replace(/^tools\//, '')
    .replace(/\.ts$/, '')
    .split('/')
    .map((part) => part.replaceAll('-', '_'))
    .join('.')

describe('the registry', () => {
  it('includes every file of tools/', () => {
    const files = filesBelow('tools').filter((file) => file !== 'tools/index.ts')
    expect(tools.map(({ name }) => name).sort()).toEqual(files.map(toName).sort())
  })

  it('has each route and name once', () => {
    expect(new Set(tools.map(({ route }) => route)).size).toBe(tools.length)
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length)
  })

  it('permits no spending tool without a rail and a scope', () => {
    const loose = tools.filter(
      (tool) => tool.effect === 'spend' && (tool.rail === undefined || tool.scopes.length === 0),
    )
    expect(loose.map(({ name }) => name)).toEqual([])
  })

  it('shows contacts by name wherever a policy is shown, and keeps their ids wherever one is written', () => {
    const members = (schema: z.ZodType, io: 'input' | 'output') =>
      JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: 'any' }))
    const declared = (tool: (typeof tools)[number]) => {
      // The input of an approval may be a policy that its owner is asked for.
      const isShown =
        members(tool.output, 'output').includes('"policy":{') || tool.name.startsWith('approvals.')
      const isWritten = members(tool.input, 'input').includes('"policy":{')
      return isWritten ? 'both' : isShown ? 'response' : undefined
    }
    const wrong = tools.filter((tool) => tool.policies !== declared(tool))
    expect(wrong.map(({ name, policies }) => [name, policies])).toEqual([])
  })

  it('records changes by people and administrators in the journal', () => {
    const elsewhere = [
      // Sealed or erased personal data: an application is not a verdict, and personal statements must be erasable.
      'compliance.kyc',
      'compliance.personal_data.erase',
      'compliance.travel_rule',
      // Journaled where the card is created, possibly by a job: src/rails/cards/issue-card.ts.
      'cards.issue',
      // A text to sign or a question, which grants nothing yet: its use or the decision is journaled.
      'agents.keys.challenge',
      'agents.registrations.reject',
      'agents.registrations.start',
      'approvals.request',
      'auth.devices.outcome',
      'auth.devices.reject',
      'auth.devices.start',
      'banking.payouts.intent',
      'swaps.orders.intent',
      'banking.payouts.quote',
      'purchases.intent',
      'wallets.allowances.intent',
      'wallets.transfer_intent',
      // Only removes what expires by itself.
      'auth.sessions.revoke',
      // Sign-in to and sign-out from one's own account, which change nothing. A linked identity is always an account of
      // its own.
      'auth.guest',
      'auth.identity_provider',
      'auth.logout',
      'auth.otp.start',
      'auth.recovery.start',
      // A provider's statement, or sandbox money.
      'docs.feedback',
      'sandbox.authorizations',
      'sandbox.bridge',
      'sandbox.clock',
      'sandbox.deposits',
      'sandbox.faucet',
      'sandbox.payouts',
      'sandbox.prices',
      'sandbox.recourse',
      // Recorded in one place, for both.
      'schedules.remove',
      'schedules.update',
      // None of these changes a permission; each has a record of its own.
      'banking.create',
      'channels.close',
      'investing.orders.cancel',
      'recourse.open',
      'swaps.quote',
      // An attempt to deliver what happened anyway.
      'webhook_endpoints.deliveries.retry',
      'webhook_endpoints.test',
    ]
    const silent = tools.filter(({ name, effect }) => {
      if (effect !== 'write') return false
      const file = filesBelow('tools').find((path) => toName(path) === name)
      return file === undefined || !readFileSync(file, 'utf8').includes('recordChange(')
    })
    expect(silent.map(({ name }) => name).sort()).toEqual(elsewhere.sort())
  })

  it.each(
    buildCatalogue(tools, { mode: 'sandbox', guests: true }).map(
      (entry) => [entry.tool.name, entry] as const,
    ),
  )('describes every field of %s', (_name, { input, output }) => {
    for (const schema of [input, output]) {
      const { properties = {} } = z
        .looseObject({ properties: z.record(z.string(), z.looseObject({})).optional() })
        .parse(schema)
      const silent = Object.entries(properties).filter(([, member]) => member.description === undefined)
      expect(silent.map(([field]) => field)).toEqual([])
    }
  })

  it.each(tools.filter(({ example }) => example !== undefined).map((tool) => [tool.name, tool] as const))(
    'accepts the example of %s',
    (_name, tool) => {
      expect(() => tool.decode(tool.example)).not.toThrow()
    },
  )

  it('serves no sandbox operation in production', () => {
    const served = buildCatalogue(tools, { mode: 'production', guests: false }).map(({ tool }) => tool.name)
    expect(served.filter((name) => name.startsWith('sandbox.') || name === 'auth.guest')).toEqual([])
  })
})
