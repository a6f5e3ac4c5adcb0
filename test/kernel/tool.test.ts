import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseJson } from '../../src/core/base/json.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { decimalAmount } from '../../src/core/money/money.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { defineTool, type Tool } from '../../src/kernel/tool.ts'
import { tools } from '../../tools/index.ts'

const common = {
  name: 'notes.keep',
  title: 'Keep',
  summary: 'Keep a note.',
  route: 'POST /notes',
  who: 'account',
  scopes: [],
  mcp: true,
  input: z.strictObject({
    amount: decimalAmount,
    tags: z.array(z.strictObject({ text: z.string() })).default([]),
    memo: z.string().optional(),
  }),
  output: z.strictObject({ amount: z.string() }),
  failures: [],
} as const

const run = async (_context: unknown, { amount }: { amount: string }) => ({ amount })
const spend = () => ({
  category: 'transfer' as const,
  money: { asset: 'USDC', units: 1n } as const,
  place: 'base-sepolia',
  chain: null,
  counterparty: null,
  facts: {},
})
const recall = async () => null
const spending = {
  ...common,
  effect: 'spend',
  proof: 'step-up',
  rail: 'wallet-transfer',
  facts: z.strictObject({}),
  spend,
  run,
  recall,
} as const
const keep = defineTool({ ...common, effect: 'write', proof: 'none', run })

describe('a spending tool', () => {
  const { spend: _spend, ...withoutSpend } = spending
  const { rail: _rail, ...withoutRail } = spending
  const { facts: _facts, ...withoutFacts } = spending
  const { recall: _recall, ...withoutRecall } = spending
  const { proof: _proof, ...withoutProof } = spending

  it('compiles only with its spend, proof, rail, facts and recall', () => {
    const spender: Tool = defineTool(spending)
    const incomplete: Tool[] = [
      // @ts-expect-error a spending tool needs `spend`
      defineTool(withoutSpend),
      // @ts-expect-error a spending tool needs a rail
      defineTool(withoutRail),
      // @ts-expect-error a spending tool needs `facts`
      defineTool(withoutFacts),
      // @ts-expect-error a spending tool needs `recall`
      defineTool(withoutRecall),
      // @ts-expect-error a spending tool declares how a person proves it
      defineTool(withoutProof),
      // @ts-expect-error a spending tool cannot go without a proof
      defineTool({ ...spending, proof: 'none' }),
      // @ts-expect-error a spend that is proven by a signature plans who signed it
      defineTool({ ...spending, proof: 'signature' }),
      // @ts-expect-error a writing tool declares its proof
      defineTool({ ...common, effect: 'write', run }),
      // @ts-expect-error `effect` is read, write or spend
      defineTool({ ...common, effect: 'pay', run }),
    ]
    expect([spender, ...incomplete].map(({ name }) => name)).toEqual(Array(10).fill('notes.keep'))
  })

  it('does not run without a reservation', async () => {
    const call = defineTool(spending).decode({ amount: '1' })
    expect(call.spend).not.toBeNull()
    // The context is not read before the reservation.
    await expect(call.run(Object.create(null), null)).rejects.toThrow('ran without a reservation')
  })
})

describe('decoding', () => {
  const findIssues = (raw: unknown) => {
    try {
      keep.decode(raw)
    } catch (error) {
      if (error instanceof Failure && error.code === 'invalid_request') return error
      throw error
    }
    throw new Error('it was taken')
  }

  it('names every issue by its path', () => {
    const { members, message } = findIssues({
      amount: '-1',
      tags: [{ text: 1 }, { text: 'a', colour: 'red' }],
      memo: 5,
    })
    expect(members.issues?.map(({ path }) => path)).toEqual([
      'amount',
      'tags.0.text',
      'tags.1.colour',
      'memo',
    ])
    expect(message).toMatch(/^amount: .*; 3 more issues$/)
  })

  it('names missing and unknown members', () => {
    expect(findIssues({}).members.issues?.map(({ path }) => path)).toEqual(['amount'])
    expect(findIssues({ amount: '1', Amount: '2' }).message).toContain('Amount is not known here')
  })

  it.each([
    ['null', null],
    ['a list', []],
    ['a text', 'x'],
    ['a number', 1],
    ['nothing', undefined],
  ])('rejects %s', (_name, raw) => {
    expect(findIssues(raw).members.issues).toHaveLength(1)
  })

  it('never repeats a submitted value', () => {
    const secret = 'hunter2hunter2'
    const problem = JSON.stringify(
      findIssues({ amount: secret, memo: { [secret]: secret }, tags: secret }).toProblem(),
    )
    expect(problem).not.toContain(secret)
  })

  it('validates a number by its text', () => {
    expect(keep.decode(parseJson('{"amount":1.10}')).input).toMatchObject({ amount: '1.10' })
    expect(keep.decode(parseJson('{"amount":1e2}')).input).toMatchObject({ amount: '100' })
    expect(keep.decode(parseJson('{"amount":1e-05}')).input).toMatchObject({ amount: '0.00001' })
    expect(findIssues(parseJson('{"amount":"1e2"}')).message).toContain('no exponent')
    expect(findIssues(parseJson('{"amount":1e400}')).message).toContain('no exponent')
  })
})

describe('an answer', () => {
  it('is validated: one that does not match is a bug, and never sent', async () => {
    const wrong = defineTool({
      ...common,
      effect: 'read',
      output: z.looseObject({ amount: z.string().length(3) }),
      run,
    })
    await expect(wrong.decode({ amount: '1' }).run(Object.create(null), null)).rejects.toThrow(z.ZodError)
  })
})

const required = z.object({
  required: z.array(z.string()).default([]),
  properties: z.record(z.string(), z.unknown()),
})
const withExample = tools.filter((tool) => tool.example !== undefined)

describe('the catalogue', () => {
  const catalogue = buildCatalogue([...tools, keep], { mode: 'sandbox', guests: true })

  it('lists exactly the required members of a tool', () => {
    const [entry] = catalogue.slice(-1)
    expect(required.parse(entry?.input).required).toEqual(['amount'])
    expect(required.parse(entry?.output).required).toEqual(['amount'])
  })

  it.each(withExample.map((tool) => [tool.name, tool] as const))(
    'lists the required members of %s',
    (name, tool) => {
      const schema = required.parse(catalogue.find((entry) => entry.tool.name === name)?.input)
      const example = z.record(z.string(), z.unknown()).parse(tool.example)
      for (const member of Object.keys(example)) {
        const { [member]: _, ...without } = example
        const isNeeded = (() => {
          try {
            tool.decode(without)
            return false
          } catch {
            return true
          }
        })()
        // A member such as a policy may be required depending on another member: the schema cannot express that.
        if (schema.required.includes(member)) expect([member, isNeeded]).toEqual([member, true])
        if (!isNeeded) expect(schema.required).not.toContain(member)
      }
      expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(example)))
    },
  )

  /** These bodies ignore unknown members. */
  const ignoring: readonly string[] = ['compliance.kyc', 'compliance.travel_rule']

  it.each(tools.map((tool) => [tool.name, tool] as const))(
    'declares whether %s rejects unknown members',
    (name) => {
      const entry = catalogue.find(({ tool }) => tool.name === name)
      const isStrict = !ignoring.includes(name)
      expect(entry?.input).toMatchObject({ type: 'object' })
      expect(entry?.input.additionalProperties).toBe(isStrict ? false : undefined)
      expect(entry?.output).toMatchObject({ type: 'object', additionalProperties: false })
    },
  )

  it('omits sandbox-only tools in production', () => {
    const sandboxOnly = defineTool({
      ...common,
      name: 'sandbox.keep',
      only: 'sandbox',
      effect: 'write',
      proof: 'none',
      run,
    })
    const production = { mode: 'production', guests: false } as const
    expect(buildCatalogue([keep, sandboxOnly], production).map(({ tool }) => tool.name)).toEqual([
      'notes.keep',
    ])
  })
})
