/**
 * An agent without a model that knows no name of the gateway. It finds tools and members by their texts, follows what
 * answers say, and sends only values that it was told, read or made itself. A step without such a ground fails the test.
 */
import { expect } from 'vitest'
import { z } from 'zod'

const listedTool = z.looseObject({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  inputSchema: z.looseObject({
    properties: z.record(z.string(), z.looseObject({ description: z.string().default('') })).default({}),
    required: z.array(z.string()).default([]),
  }),
})
type ListedTool = z.output<typeof listedTool>

/** The members that the clients of both generations have in common. */
interface McpClient {
  getInstructions(): string | undefined
  listTools(): Promise<{ tools: readonly unknown[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<Record<string, unknown>>
}

/** An answer as the agent reads it. */
export interface Answer {
  readonly isError: boolean
  readonly body: Readonly<Record<string, unknown>>
}

export interface Newcomer {
  /** The tool whose title and first sentence share most with a wish in everyday words. */
  findTool(wish: string): ListedTool
  /** The tools that a text names, in its order. It must have been read. */
  toolsNamedIn(text: string): readonly ListedTool[]
  /** The one member of a tool's input whose name or description matches. */
  findMember(tool: ListedTool, meaning: RegExp): string
  /** Declares a value that the agent makes itself: a key, a reason, a calculation. */
  make(value: string): string
  /** Quotes what the agent has read. Fails if nothing says so. */
  quote(meaning: RegExp): string
  call(tool: ListedTool, input?: Record<string, unknown>): Promise<Answer>
  /** Calls until an answer matches. */
  follow(
    tool: ListedTool,
    input: Record<string, unknown>,
    until: (answer: Answer) => boolean,
  ): Promise<Answer>
}

/** Lets an agent read the instructions and the list of tools. @param task the owner's words. */
export async function newNewcomer(client: McpClient, task: string): Promise<Newcomer> {
  const tools = z.array(listedTool).parse((await client.listTools()).tools)
  const read = [task, client.getInstructions() ?? '', ...textsIn(tools, true)]
  const made = new Set<string>()
  const isKnown = (text: string) => made.has(text) || read.some((each) => each.includes(text))
  const call: Newcomer['call'] = async (tool, input = {}) => {
    expect(tools).toContain(tool)
    const { properties, required } = tool.inputSchema
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(input)))
    expect(Object.keys(input)).toEqual(expect.arrayContaining(required))
    for (const text of textsIn(input))
      expect([tool.name, text, isKnown(text)]).toEqual([tool.name, text, true])
    const { isError = false, content } = await client.callTool({ name: tool.name, arguments: input })
    const [first] = z.array(z.looseObject({ text: z.string() })).parse(content)
    const body = z.looseObject({}).parse(JSON.parse(first?.text ?? ''))
    read.push(...textsIn(body, true))
    return { isError: isError === true, body }
  }
  const toolsNamedIn: Newcomer['toolsNamedIn'] = (text) => {
    expect([text, isKnown(text)]).toEqual([text, true])
    return tools
      .map((tool) => ({ tool, at: text.search(new RegExp(`\\b${tool.name}\\b`)) }))
      .filter(({ at }) => at >= 0)
      .sort((one, other) => one.at - other.at)
      .map(({ tool }) => tool)
  }
  return {
    findTool: (wish) => bestFor(tools, wish),
    toolsNamedIn,
    findMember: (tool, meaning) => {
      const found = Object.entries(tool.inputSchema.properties).filter(([name, { description }]) =>
        meaning.test(`${name}: ${description}`),
      )
      expect([tool.name, meaning, found.map(([name]) => name)]).toEqual([
        tool.name,
        meaning,
        [expect.any(String)],
      ])
      return found[0]?.[0] ?? ''
    },
    make: (value) => {
      made.add(value)
      return value
    },
    quote: (meaning) => {
      const [found] = read.flatMap((text) => meaning.exec(text)?.slice(0, 1) ?? [])
      expect([meaning, found]).toEqual([meaning, expect.any(String)])
      return found ?? ''
    },
    call,
    follow: async (tool, input, until) => {
      let answer = await call(tool, input)
      await expect
        .poll(
          async () => {
            if (!until(answer)) answer = await call(tool, input)
            return until(answer)
          },
          { interval: 500 },
        )
        .toBe(true)
      return answer
    },
  }
}

/** All texts in a value, with the names of its members, or of nested ones only. */
function textsIn(value: unknown, isNested = false): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => [
    ...(isNested ? [name] : []),
    ...textsIn(member, true),
  ])
}

const splitWords = (text: string) => [
  ...new Set((text.toLowerCase().match(/[a-z]+/g) ?? []).map((word) => word.replace(/s$/, ''))),
]

/** Ranks by shared words, rare ones first. */
function bestFor(tools: readonly ListedTool[], wish: string): ListedTool {
  const texts = tools.map(({ title, description }) =>
    splitWords(`${title} ${/^[^.]*/.exec(description)?.[0]}`),
  )
  const weigh = (word: string) => {
    const holders = texts.filter((words) => words.includes(word)).length
    return holders === 0 ? 0 : Math.log((tools.length + 1) / holders)
  }
  const scores = texts.map((words) =>
    splitWords(wish)
      .filter((word) => words.includes(word))
      .reduce((sum, word) => sum + weigh(word), 0),
  )
  const best = Math.max(...scores)
  const [found, other] = tools.filter((_, at) => scores[at] === best)
  if (found === undefined || other !== undefined || best === 0)
    throw new Error(`No tool is meant by “${wish}” alone: ${found?.name}, ${other?.name}`)
  return found
}
