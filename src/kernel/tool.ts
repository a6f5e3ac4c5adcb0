/**
 * The tool: one operation, defined once, served by REST, MCP and OpenAPI. Its types are closed over at definition, so
 * that the registry is a plain list. A spending tool does not compile without its spend plan.
 */
import type { z } from 'zod'
import type { Screening } from '../../policies/aml/screening.ts'
import type { Directions } from '../../policies/directions.ts'
import type { Scope } from '../../policies/scopes.ts'
import type { PlannedSpend } from '../books/spending/build-spend-request.ts'
import type { Json } from '../core/base/json.ts'
import type { MemberRole } from '../core/base/principal.ts'
import type { Failure, FailureCode, FailureMembers } from '../core/failures/failure.ts'
import type { RailId } from '../providers/rail-controls/port.ts'
import type { Context, Services } from './context.ts'
import { invalidInput } from './invalid-input.ts'

/**
 * Proof that a person gives for an operation, besides the session. A key gives none: its scopes and policy were granted with one.
 * `none`: no money of a person leaves by it, or is promised. `recent`: a recent second factor or, in production without an enrolled
 * one, a recent sign-in. `step-up`: a recent second factor. `signature`: the owner's signature where the account has a signer,
 * otherwise a recent second factor. `loosening`: a proof for what loosens, as declared. `conditional`: `run` asks for one where the
 * input needs it.
 */
export type Proof = 'none' | 'recent' | 'step-up' | 'signature' | 'loosening' | 'conditional'

/** `read` changes nothing, `write` changes our own records, `spend` moves money. */
export type Effect = 'read' | 'write' | 'spend'

export type Route = `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`

/** A spend that a call plans. @property fundsHint replaces the usual hint of `insufficient_funds`. */
export interface SpendPlan<Facts = unknown> extends PlannedSpend {
  readonly fundsHint?: string
  readonly aml?: AmlScreened
  /** The sponsor pays the gas, which counts against the account's daily budget of sponsored operations. */
  readonly isSponsored?: true
  /** Facts collected for `run`. */
  readonly facts: Facts
}

/** A spend that a person proves by a signature. @property signedBy signer of exactly this payment; null: none signed it. */
export interface SignedSpendPlan<Facts = unknown> extends SpendPlan<Facts> {
  readonly signedBy: string | null
}

/**
 * The AML screening of a spend. A spend that is not cleared is denied and recorded like any other. Its `subject` identifies
 * it within its account, for reviews; a `releasedReview` is consumed by it.
 */
export interface AmlScreened extends NonNullable<PlannedSpend['aml']> {
  readonly refusal: (
    screening: Screening,
    recorded: Pick<FailureMembers, 'decisionId' | 'violations'>,
  ) => Failure
}

/** A repeated spend under the caller's own name: nothing is spent, and the earlier response is returned. */
export interface RepeatedSpend {
  /** Id of the decision that allowed it. */
  readonly repeats: string
}

/** A call that turned out to cost nothing: nothing is decided or held, and this is its response. */
export interface CostlessCall {
  readonly costless: Readonly<Record<string, unknown>>
}

export interface AllowedDecision<Facts = unknown> {
  readonly decisionId: string
  readonly facts: Facts
}

/** A reserved spend: the money is held and the budget counted. */
export type ReservedSpend<Facts = unknown> = SpendPlan<Facts> &
  AllowedDecision<Facts> & {
    /** Wallet of the transfer's row that was written with the hold, true for an order's, the state of a purchase's; null: none was. */
    readonly written: Json | null
  }

interface Common<Input extends z.ZodType, Output extends z.ZodType> {
  /** `domain.operation`: the file's path, the OpenAPI operationId and, with `_`, the MCP tool name. */
  readonly name: string
  /** Short title. */
  readonly title: string
  /** One sentence about the effect. */
  readonly summary: string
  /** When to use it, and what goes wrong without reading it. With the summary it is all that a model sees: keep it short. */
  readonly description?: string
  /** Continues the description for readers of the REST API, who have time. */
  readonly restDescription?: string
  readonly route: Route
  /**
   * The least role of a person who may do it. By default a viewer reads, and everything else is for owners. `run` asks for a higher
   * one where the input needs it.
   */
  readonly role?: MemberRole
  /** Input members of no use to a key. The MCP tool does not list them. */
  readonly restOnly?: readonly string[]
  /** Optional input members that every key needs. */
  readonly requiredOverMcp?: readonly string[]
  /** Served only in sandbox mode, or only with demo sessions enabled. */
  readonly only?: 'sandbox' | 'guests'
  /** Rate class in addition to that of all mutating requests. */
  readonly rate?: string
  /**
   * The operation stops money or access, or is needed for that, as signing in is: it has a rate budget per session, key or known
   * browser, which nothing else and nobody else uses up.
   */
  readonly stops?: true
  /** A paused key may do it too: it only takes away what the key has given. */
  readonly whilePaused?: true
  /** The response contains a session; over REST it is also set as a cookie. */
  readonly opensSession?: true
  /** `status` of a response that waits for a person's decision; REST answers it with 202. */
  readonly waits?: string
  /** Ends the session; over REST the cookie is cleared too. */
  readonly closesSession?: true
  /** Secret members of the response: never stored, and null in a replayed response that is not rebuilt, and in approvals. */
  readonly shownOnce?: readonly string[]
  /** Members of the response that people get with line breaks and direction marks: goods, and what is signed. */
  readonly verbatim?: readonly string[]
  /** List member that REST also serves as text/csv. */
  readonly csv?: string
  /** Media types in which REST also serves the response, with the extension of such a file. */
  readonly documents?: Readonly<
    Record<
      string,
      { readonly extension: string; readonly write: (answer: unknown) => Promise<string | Uint8Array> }
    >
  >
  /** REST also serves it as text/event-stream: `src/server/http/event-stream.ts`. */
  readonly stream?: true
  /** REST also serves the bytes that it describes: `src/server/http/answer-stream.ts`. */
  readonly download?: true
  /** Longest body over REST, in bytes; 64 KiB by default. */
  readonly maxBodyBytes?: number
  /** Leaves out of an input what no record may have; a fingerprint is of the rest. */
  readonly withoutSecrets?: (input: unknown) => unknown
  /**
   * Leaves out of an input what an approval does not keep. Returns the input itself if there is nothing: otherwise its caller makes
   * the approved call again.
   */
  readonly keepable?: (input: unknown) => unknown
  /** The tool calls providers or counts limits, so it opens its own transactions. */
  readonly ownTransactions?: true
  /** Input member that names the payee: `contact:NAME` in it is resolved before the input is decoded. */
  readonly payee?: 'destination' | 'recipientId' | 'spend.counterparty'
  /**
   * Spend policies are in the input and the response, or in the response alone. Contacts in them are names outside and ids inside:
   * `policy-contacts.ts`.
   */
  readonly policies?: 'both' | 'response'
  /** Allowed values of a path parameter, if the deployment defines them. */
  readonly pathValues?: Readonly<
    Record<string, (services: Pick<Services, 'identityProviders'>) => readonly string[]>
  >
  /** Rail that must be enabled. */
  readonly rail?: RailId
  /** The context on the chain that the input names, for everything that the call does; absent: the default chain. */
  readonly chain?: (context: Context, input: z.output<Input>) => Context
  readonly input: Input
  readonly output: Output
  readonly failures: readonly FailureCode[]
  /** A valid input, for documentation and tests. */
  readonly example?: z.input<Input>
}

/**
 * Callers of a tool. `person`: a session. `admin`: an administrator's session. `account`: a session, or a key with the scopes.
 * `public`: no authentication; its scopes are those that a key needs. Keys, and therefore MCP, reach the last two only.
 * @property mcp true if the tool is served over MCP. @property orScopes reach it too, without `scopes`: `run` decides for what.
 */
type Access =
  | {
      readonly who: 'person' | 'admin'
      readonly scopes?: never
      readonly orScopes?: never
      readonly mcp?: never
    }
  | {
      readonly who: 'account'
      readonly scopes: readonly Scope[]
      readonly orScopes?: readonly Scope[]
      readonly mcp: boolean
    }
  | {
      readonly who: 'public'
      readonly scopes?: readonly Scope[]
      readonly orScopes?: never
      readonly mcp?: true
    }

interface Runs<Input extends z.ZodType, Output extends z.ZodType> extends Common<Input, Output> {
  readonly run: (context: Context, input: z.output<Input>) => Promise<z.input<Output>>
}

/** A tool that moves no money. One that writes declares its proof, because it may promise or release money. */
export type PlainTool<Input extends z.ZodType, Output extends z.ZodType> = Runs<Input, Output> &
  Access &
  (
    | { readonly effect: 'read'; readonly proof?: Proof }
    | { readonly effect: 'write'; readonly proof: Exclude<Proof, 'loosening'> }
    | {
        readonly effect: 'write'
        readonly proof: 'loosening'
        /** The direction in which each member loosens. */
        readonly loosens: Directions<z.output<Input>>
      }
  )

/** A tool that moves money. `spend` reads, may fail, and never writes; it runs before the reservation. */
interface Spends<Input extends z.ZodType, Output extends z.ZodType, Facts> extends Common<Input, Output> {
  readonly effect: 'spend'
  readonly rail: RailId
  /** Facts from `spend` for `run`; stored with the decision, so that the response can be rebuilt. */
  readonly facts: z.ZodType<Facts>
  /**
   * Plans the part of the spend that is known before `spend` asks third parties, with an amount of zero. They are
   * not asked if the policy denies it.
   */
  readonly foresee?: (
    context: Context,
    input: z.output<Input>,
  ) => Pick<PlannedSpend, 'category' | 'money' | 'chain' | 'seller' | 'facts'>
  readonly run: (
    context: Context,
    input: z.output<Input>,
    reserved: ReservedSpend<Facts>,
  ) => Promise<z.input<Output>>
  /** Rebuilds the response of an earlier run from stored data; null while that run is unfinished. */
  readonly recall: (
    context: Context,
    input: z.output<Input>,
    decided: AllowedDecision<Facts>,
  ) => Promise<z.input<Output> | null>
  /** Delivers the same response for an x402 payment over REST, without a principal. */
  readonly sale?: (context: Context, input: z.output<Input>) => Promise<Record<string, unknown>>
}

type PlanSpend<Input extends z.ZodType, Plan> = (
  context: Context,
  input: z.output<Input>,
) => Plan | Promise<Plan | RepeatedSpend | CostlessCall>

/** A spend declares how a person proves it. `payer`: a payer outside has signed it, and no money of the account leaves. */
export type SpendTool<Input extends z.ZodType, Output extends z.ZodType, Facts> = Spends<
  Input,
  Output,
  Facts
> &
  Access &
  (
    | { readonly proof: 'step-up' | 'payer'; readonly spend: PlanSpend<Input, SpendPlan<Facts>> }
    | { readonly proof: 'signature'; readonly spend: PlanSpend<Input, SignedSpendPlan<Facts>> }
  )

export interface Call {
  /** Decoded input without secrets, for fingerprints. */
  readonly input: unknown
  /** Raw input, for storage: without what is not kept. */
  readonly raw: unknown
  /** False if the raw input lacks something, so that only its caller can make the call. */
  readonly isWhole: boolean
  readonly spend: ((context: Context) => Promise<SpendPlan | RepeatedSpend | CostlessCall>) | null
  /** Plan before third parties are asked; null if {@link spend} asks none. */
  readonly foresee: ((context: Context) => SpendPlan) | null
  /** Rebuilds the response of an earlier run, or returns null. @param decided as it was stored. */
  readonly recall: (context: Context, decided: AllowedDecision) => Promise<Record<string, unknown> | null>
  readonly sell: ((context: Context) => Promise<Record<string, unknown>>) | null
  /**
   * Runs the call and encodes the response. @param reserved the reservation of {@link spend}; null for tools that
   * move no money.
   */
  readonly run: (context: Context, reserved: ReservedSpend | null) => Promise<Record<string, unknown>>
}

export interface Tool extends Omit<Common<z.ZodType, z.ZodType>, 'example' | 'chain' | 'role'> {
  readonly who: Access['who']
  readonly scopes: readonly Scope[]
  /** Alternative to `scopes`; null: none. */
  readonly orScopes: readonly Scope[] | null
  readonly mcp: boolean
  readonly role: MemberRole
  readonly effect: Effect
  readonly proof: Proof | 'payer'
  /** Declared directions by member; null: no member of it loosens by itself. */
  readonly loosens: Readonly<Record<string, unknown>> | null
  readonly example?: unknown
  readonly isSold: boolean
  /** Decodes raw input. @throws Failure `invalid_request` with every issue. */
  readonly decode: (raw: unknown) => Call
}

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
  const { chain: onChain = (context: Context) => context, ...described } = definition
  return {
    ...described,
    scopes: definition.scopes ?? [],
    orScopes: definition.orScopes ?? null,
    mcp: definition.mcp ?? false,
    role: definition.role ?? (definition.effect === 'read' ? 'viewer' : 'owner'),
    proof: definition.proof ?? 'none',
    loosens: 'loosens' in definition ? definition.loosens : null,
    isSold: definition.effect === 'spend' && definition.sale !== undefined,
    decode(given) {
      const input = decodeInput(definition.input, given)
      const raw = definition.keepable === undefined ? given : definition.keepable(given)
      const kept = {
        input: definition.withoutSecrets === undefined ? input : definition.withoutSecrets(input),
        raw,
        isWhole: raw === given,
      }
      if (definition.effect !== 'spend') {
        const { run } = definition
        return {
          ...kept,
          spend: null,
          foresee: null,
          sell: null,
          recall: async () => null,
          run: async (context) => encode(await run(onChain(context, input), input)),
        }
      }
      const { spend, foresee, run, sale, recall, facts } = definition
      return {
        ...kept,
        sell: sale === undefined ? null : (context) => sale(onChain(context, input), input),
        foresee:
          foresee === undefined
            ? null
            : (context) => ({ ...foresee(onChain(context, input), input), place: null, counterparty: null }),
        spend: async (context) => {
          const plan = await spend(onChain(context, input), input)
          return 'costless' in plan ? { costless: encode(plan.costless) } : plan
        },
        recall: async (context, decided) => {
          const recalled = await recall(onChain(context, input), input, {
            ...decided,
            facts: facts.parse(decided.facts),
          })
          return recalled === null ? null : encode(recalled)
        },
        run: async (context, reserved) => {
          if (reserved === null) throw new Error(`${definition.name} ran without a reservation`)
          // The plan is what `spend` returned: the same call's, so its facts are this tool's.
          return encode(await run(onChain(context, input), input, reserved as ReservedSpend<Facts>))
        },
      }
    },
  }
}

function decodeInput<Input extends z.ZodType>(schema: Input, raw: unknown): z.output<Input> {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  throw invalidInput(parsed.error, { schema, raw })
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('a tool must return an object')
  return Object.fromEntries(Object.entries(value))
}
