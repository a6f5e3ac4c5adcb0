/**
 * The tool: one operation, said once, served by REST, MCP and OpenAPI. Its types are closed over when it is defined, so
 * that the registry is a plain list. A tool that spends cannot be written without saying what it spends.
 */
import type { z } from 'zod'
import type { Screening } from '../../policies/aml/screening.ts'
import type { Scope } from '../../policies/scopes.ts'
import { Failure, type FailureCode, type FailureMembers } from '../failures/failure.ts'
import type { RailId } from '../providers/rail-controls.ts'
import type { PlannedSpend } from '../spending/build-spend-request.ts'
import type { Context, Services } from './context.ts'

/** `read` changes nothing, `write` changes our own records, `spend` moves money. */
export type Effect = 'read' | 'write' | 'spend'

/** A route as one line. */
export type Route = `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`

/** A spend that a call plans. @property fundsHint replaces the usual hint of `insufficient_funds`. */
export interface SpendPlan<Facts = unknown> extends PlannedSpend {
  readonly fundsHint?: string
  readonly aml?: AmlScreened
  /** The sponsor pays its gas: it counts in the account's daily budget of sponsored operations. */
  readonly isSponsored?: true
  /** What `run` needs of what was found while planning. */
  readonly facts: Facts
}

/**
 * A screened spend. One that is not cleared is denied and recorded like any other denial; reviews are kept by its `subject`,
 * which names exactly this spend among those of its account.
 */
export interface AmlScreened extends NonNullable<PlannedSpend['aml']> {
  readonly refusal: (
    screening: Screening,
    recorded: Pick<FailureMembers, 'decisionId' | 'violations'>,
  ) => Failure
}

/** The caller named this spend before, by a name of its own: nothing is spent, and the earlier answer is told. */
export interface RepeatedSpend {
  /** The decision that allowed it. */
  readonly repeats: string
}

/** An allowed decision and what it was taken on. */
export interface AllowedDecision<Facts = unknown> {
  readonly decisionId: string
  readonly facts: Facts
}

/** A spending that is reserved: the money is held and the budget counted. */
export type ReservedSpend<Facts = unknown> = SpendPlan<Facts> & AllowedDecision<Facts>

interface Common<Input extends z.ZodType, Output extends z.ZodType> {
  /** `room.operation`: the path of its file, the OpenAPI operationId and, with `_`, the MCP tool's name. */
  readonly name: string
  /** A few words for people. */
  readonly title: string
  /** One sentence that says what it does. */
  readonly summary: string
  /** More, for a reader that has never seen the product: units, what to do on each failure. */
  readonly description?: string
  readonly route: Route
  /** `public`: anybody. `person`: a session. `admin`: an administrator's. `account`: a session, or a key that has the scopes. */
  readonly who: 'public' | 'person' | 'admin' | 'account'
  readonly scopes: readonly Scope[]
  /** Whether agents may call it over MCP. */
  readonly mcp: boolean
  /** Exists only in sandbox mode, or only where demo sessions are switched on. */
  readonly only?: 'sandbox' | 'guests'
  /** Privileged: needs a fresh second factor; `recent`: that, or in production a fresh sign-in where none is enrolled. */
  readonly stepUp?: true | 'recent'
  /** Limit class beside the one that every mutating request counts in. */
  readonly rate?: string
  /** The answer is a session: over REST it also comes as a cookie. */
  readonly opensSession?: true
  /** Ends the session: over REST the cookie goes too. */
  readonly closesSession?: true
  /** Members of the answer that are secrets: a repeated answer has null there, and they are stored nowhere. */
  readonly shownOnce?: readonly string[]
  /** The list of the answer that REST also serves as text/csv. */
  readonly csv?: string
  /** It asks others on the way, or counts limits: it opens its transactions itself. */
  readonly ownTransactions?: true
  /** The values that a parameter of the path can have, where the deployment decides. */
  readonly pathValues?: Readonly<
    Record<string, (services: Pick<Services, 'identityProviders'>) => readonly string[]>
  >
  /** The rail whose control must be on. */
  readonly rail?: RailId
  readonly input: Input
  readonly output: Output
  readonly failures: readonly FailureCode[]
  /** A valid input, shown in the documentation and used by tests. */
  readonly example?: z.input<Input>
}

/** A tool that moves no money. */
export interface PlainTool<Input extends z.ZodType, Output extends z.ZodType> extends Common<Input, Output> {
  readonly effect: 'read' | 'write'
  readonly run: (context: Context, input: z.output<Input>) => Promise<z.input<Output>>
}

/** A tool that moves money. `spend` reads, may refuse, and never writes; it runs before anything is reserved. */
export interface SpendTool<Input extends z.ZodType, Output extends z.ZodType, Facts>
  extends Common<Input, Output> {
  readonly effect: 'spend'
  readonly rail: RailId
  /** What `spend` finds out for `run`; kept on the decision, so that an answer can be told again. */
  readonly facts: z.ZodType<Facts>
  readonly spend: (
    context: Context,
    input: z.output<Input>,
  ) => SpendPlan<Facts> | Promise<SpendPlan<Facts> | RepeatedSpend>
  readonly run: (
    context: Context,
    input: z.output<Input>,
    reserved: ReservedSpend<Facts>,
  ) => Promise<z.input<Output>>
  /** The answer of an earlier run of the same call, from what was stored; null while that run has not come to one. */
  readonly recall: (
    context: Context,
    input: z.output<Input>,
    decided: AllowedDecision<Facts>,
  ) => Promise<z.input<Output> | null>
  /** Where strangers may buy the same thing over REST by x402: delivers it without a principal, for the price. */
  readonly sale?: (context: Context, input: z.output<Input>) => Promise<Record<string, unknown>>
}

/** One decoded call of a tool. */
export interface Call {
  /** The decoded input, for fingerprints. */
  readonly input: unknown
  /** The input as it came, to be decoded again. */
  readonly raw: unknown
  readonly spend: ((context: Context) => Promise<SpendPlan | RepeatedSpend>) | null
  /** The answer of an earlier run, or null while there is none. @param decided as it was stored. */
  readonly recall: (context: Context, decided: AllowedDecision) => Promise<Record<string, unknown> | null>
  readonly sell: ((context: Context) => Promise<Record<string, unknown>>) | null
  /** Runs it and encodes the answer. @param reserved what {@link spend} named, reserved; null for tools that move no money. */
  readonly run: (context: Context, reserved: ReservedSpend | null) => Promise<Record<string, unknown>>
}

/** A tool as the registry holds it. */
export interface Tool extends Omit<Common<z.ZodType, z.ZodType>, 'example'> {
  readonly effect: Effect
  readonly example?: unknown
  readonly isSold: boolean
  /** Decodes raw input. @throws Failure `invalid_request` with every issue. */
  readonly decode: (raw: unknown) => Call
}

/** Defines a tool. */
export function defineTool<Input extends z.ZodType, Output extends z.ZodType>(
  definition: PlainTool<Input, Output>,
): Tool
export function defineTool<Input extends z.ZodType, Output extends z.ZodType, Facts>(
  definition: SpendTool<Input, Output, Facts>,
): Tool
export function defineTool<Input extends z.ZodType, Output extends z.ZodType, Facts>(
  definition: PlainTool<Input, Output> | SpendTool<Input, Output, Facts>,
): Tool {
  const encode = (result: unknown) => asObject(definition.output.parse(result))
  return {
    ...definition,
    isSold: definition.effect === 'spend' && definition.sale !== undefined,
    decode(raw) {
      const input = decodeInput(definition.input, raw)
      if (definition.effect !== 'spend') {
        const { run } = definition
        return {
          input,
          raw,
          spend: null,
          sell: null,
          recall: async () => null,
          run: async (context) => encode(await run(context, input)),
        }
      }
      const { spend, run, sale, recall, facts } = definition
      let spending: SpendPlan<Facts> | undefined
      return {
        input,
        raw,
        sell: sale === undefined ? null : (context) => sale(context, input),
        spend: async (context) => {
          const asked = await spend(context, input)
          spending = 'repeats' in asked ? undefined : asked
          return asked
        },
        recall: async (context, decided) => {
          const recalled = await recall(context, input, { ...decided, facts: facts.parse(decided.facts) })
          return recalled === null ? null : encode(recalled)
        },
        run: async (context, reserved) => {
          if (spending === undefined || reserved === null)
            throw new Error(`${definition.name} ran without a reservation`)
          return encode(await run(context, input, { ...spending, decisionId: reserved.decisionId }))
        },
      }
    },
  }
}

function decodeInput<Input extends z.ZodType>(schema: Input, raw: unknown): z.output<Input> {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  throw invalidInput(parsed.error)
}

/** The failure that a schema's refusal becomes. Says where and what, never the value. */
function invalidInput(error: z.ZodError): Failure {
  const issues = error.issues.map((issue) => ({
    path: issue.path.map(String).join('.'),
    // The class that keeps a number as it was written is our own matter.
    message: issue.message.replace('LosslessNumber', 'number'),
  }))
  const [first] = issues
  const where = first === undefined || first.path === '' ? '' : `${first.path}: `
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return new Failure('invalid_request', `${where}${first?.message ?? 'The input is not valid.'}${more}`, {
    issues,
    hint: 'Correct the members named in "issues" and send the request again.',
  })
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('a tool must answer an object')
  return Object.fromEntries(Object.entries(value))
}
