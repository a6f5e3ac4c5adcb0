/**
 * The kernel: runs every call of every transport. Checks access, decodes the input and reads the rail; then the tool
 * reads, writes once or spends once. May import base, ports, ledger, spending and policies.
 */

import { type Approval, findCallersApproval, storeApprovalOutcome } from '../books/approvals/approvals.ts'
import { findAllowedDecision, findDecisionFacts } from '../books/spending/decisions.ts'
import { withClaimedIdempotency, withIdempotency } from '../books/spending/idempotency.ts'
import { insertNote, parseNote } from '../books/spending/spend-note.ts'
import { type Json, toJson } from '../core/base/json.ts'
import { Failure, failures } from '../core/failures/failure.ts'
import { idempotencyInProgress } from '../core/failures/idempotency-failures.ts'
import { PlanAgain } from '../core/failures/plan-again.ts'
import type { Connection, Database } from '../storage/database.ts'
import { type Context, requireCaller } from './context.ts'
import { hashCall, hashSpendCall, idempotencyOwner, withoutProof } from './fingerprint.ts'
import { recordFirstUse } from './first-use.ts'
import { requireProof } from './gates/proof.ts'
import { requireRail } from './gates/rail.ts'
import { requireScope, requireUnpaused } from './gates/scope.ts'
import { reserve, type SpendGate } from './gates/spend.ts'
import { keepingContactIds, showContactNames } from './policy-contacts.ts'
import { resolvePayee } from './resolve-payee.ts'
import { requireValidCredential } from './standing.ts'
import type { Call, Effect, Tool } from './tool.ts'

/**
 * @property replayed the body is the stored response of an earlier call with the same idempotency key.
 * @property decisionId decision that allowed the spend, or null.
 */
export interface Outcome {
  readonly body: Record<string, unknown>
  readonly replayed: boolean
  readonly decisionId: string | null
}

/** @throws Failure of the tool and the gates. */
export async function run(tool: Tool, caller: Omit<Context, 'afterCommit'>, raw: unknown): Promise<Outcome> {
  const outcome = await runCall(tool, caller, raw)
  return { ...outcome, body: await showContactNames(caller, tool, outcome.body) }
}

/** Runs a call whose response is kept: contacts in policies are ids there. @throws Failure of the tool and the gates. */
export async function runCall(
  tool: Tool,
  caller: Omit<Context, 'afterCommit'>,
  raw: unknown,
): Promise<Outcome> {
  requireScope(tool, caller.principal)
  await recordFirstUse(caller.database, caller.principal, caller.now)
  if (tool.effect !== 'spend') await requireProof(tool, raw, caller)
  const { raw: resolved, payee } = await resolvePayee(caller, tool, raw)
  const call = keepingContactIds(tool, tool.decode(resolved), resolved)
  const { context, runLater } = committing(payee === null ? caller : { ...caller, payee })
  const outcome = await context.tracing.span('tool run', { 'bursar.tool': tool.name }, () =>
    effects[tool.effect](tool, call, context),
  )
  await runLater()
  return outcome
}

/** Creates a context that collects work for after the commit. */
function committing(caller: Omit<Context, 'afterCommit'>) {
  const later: ((database: Database) => Promise<void>)[] = []
  const context: Context = { ...caller, afterCommit: (work) => later.push(work) }
  const runLater = async () => {
    for (const work of later) await work(caller.database)
  }
  return { context, runLater }
}

const effects: Record<Effect, (tool: Tool, call: Call, context: Context) => Promise<Outcome>> = {
  read,
  write,
  spend,
}

async function read(tool: Tool, call: Call, context: Context): Promise<Outcome> {
  await requireRail(tool, context)
  return toOutcome(await call.run(context, null))
}

/** Changes own records in one transaction with the idempotency key. Tools that call providers claim the key first. */
async function write(tool: Tool, call: Call, context: Context): Promise<Outcome> {
  const mayBePaused = tool.whilePaused === true
  if (!mayBePaused) requireUnpaused(context.principal)
  await requireRail(tool, context)
  const { principal, idempotencyKey, now } = context
  const database = committingRefusals(context.database)
  const isOwn = tool.ownTransactions === true
  const work = async (connection: Connection) => {
    await requireValidCredential(connection, principal, { mayBePaused })
    return call.run({ ...context, database: within(database, connection) }, null)
  }
  const workAlone = async () => {
    await requireValidCredential(context.database, principal, { mayBePaused })
    return call.run(context, null)
  }
  // A session token is returned once and never stored.
  const isKept = idempotencyKey !== null && principal.kind !== 'public' && tool.opensSession !== true
  if (!isKept) return toOutcome(isOwn ? await workAlone() : await database.transaction(work))
  let answered: Record<string, unknown> | undefined
  const keepable = async (running: Promise<Record<string, unknown>>) => {
    answered = await running
    return toJson({ ...answered, ...hideShownOnce(tool, answered) })
  }
  const idempotent = {
    principal: idempotencyOwner(principal),
    key: idempotencyKey,
    fingerprint: context.payee?.fingerprint ?? hashCall(tool.name, call.input),
    at: now,
  }
  const { answer, replayed } = isOwn
    ? await withClaimedIdempotency(context.database, idempotent, () => keepable(workAlone()))
    : await withIdempotency(database, idempotent, (connection) => keepable(work(connection)))
  return { body: answered ?? asBody(answer), replayed, decisionId: null }
}

function toOutcome(body: Record<string, unknown>): Outcome {
  return { body, replayed: false, decisionId: null }
}

/** Replaces secret members by null in the stored response. */
export function hideShownOnce(
  { shownOnce = [] }: Tool,
  answered: Record<string, unknown>,
): Record<string, null> {
  const hidden = shownOnce.filter((name) => answered[name] !== undefined)
  return Object.fromEntries(hidden.map((name) => [name, null]))
}

/** Commits a transaction when its failure requires it, and then throws the failure. */
function committingRefusals(database: Database): Database {
  return {
    ...database,
    transaction: async (work) => {
      const outcome = await database.transaction(async (connection) => {
        try {
          return { result: await work(connection) }
        } catch (error) {
          if (error instanceof Failure && error.members.isCommitted === true) return { refusal: error }
          throw error
        }
      })
      if ('refusal' in outcome) throw outcome.refusal
      return outcome.result
    },
  }
}

/**
 * Holds the money first; the tool settles or releases it, and unknown outcomes stay held. A repeated call returns the
 * first outcome.
 */
async function spend(tool: Tool, call: Call, context: Context): Promise<Outcome> {
  const { principal } = context
  const mayBeAgreedTo = principal.kind === 'session' && (principal.account.quorums ?? []).length > 0
  const approval = call.isWhole && !mayBeAgreedTo ? undefined : await findOwnApproval(tool, call, context)
  return approval === undefined
    ? spendOnce(tool, call, context)
    : spendApproved(tool, call, { context, approval })
}

/** The yes to a call that only its caller can make: its input is not kept, or a person makes it themselves. */
async function findOwnApproval(tool: Tool, call: Call, context: Context): Promise<Approval | undefined> {
  const { principal, database, idempotencyKey, approvedBy } = context
  const at = context.onCalendar(context.now)
  if (principal.kind === 'public' || approvedBy !== undefined) return undefined
  const fingerprint = hashSpendCall(context, tool.name, withoutProof(tool, context, call.input))
  const caller =
    principal.kind === 'key'
      ? { keyId: principal.key.id }
      : { keyId: null, askerId: principal.person.id, accountId: principal.account.id }
  return findCallersApproval(database, { ...caller, fingerprint, idempotencyKey, at })
}

/** Makes an approved call, and keeps its outcome with the approval. A failure that decided nothing leaves it to the next try. */
async function spendApproved(
  tool: Tool,
  call: Call,
  { context, approval }: { context: Context; approval: Approval },
): Promise<Outcome> {
  const { database } = context
  const now = context.onCalendar(context.now)
  const { id } = approval
  const idempotencyKey = approval.idempotencyKey ?? id
  try {
    const outcome = await spendOnce(tool, call, { ...context, idempotencyKey, approvedBy: id })
    const answer = toJson({ ...outcome.body, ...hideShownOnce(tool, outcome.body) })
    await storeApprovalOutcome(database, { id, outcome: { answer }, now })
    return outcome
  } catch (error) {
    const isOver =
      error instanceof Failure &&
      error.members.decisionId !== undefined &&
      (error.members.isFinal === true || !failures[error.code].retry)
    if (isOver)
      await storeApprovalOutcome(database, { id, outcome: { problem: toJson(error.toProblem()) }, now })
    throw error
  }
}

async function spendOnce(tool: Tool, call: Call, context: Context): Promise<Outcome> {
  const gate = await admit(tool, call, context)
  if (gate.kind === 'reserved') {
    const accountId = requireCaller(context).account.id
    await insertNote(context.database, { ...parseNote(call.input), decisionId: gate.decisionId, accountId })
    try {
      return {
        body: await call.run(context, {
          ...gate.spending,
          decisionId: gate.decisionId,
          written: gate.written,
        }),
        replayed: false,
        decisionId: gate.decisionId,
      }
    } catch (error) {
      if (!(error instanceof PlanAgain) || context.onlyBy !== undefined) throw error
      return spendOnce(tool, call, { ...context, onlyBy: error.purseId })
    }
  }
  if (gate.kind === 'costless') return toOutcome(gate.answer)
  return recallSpend(call, context, gate)
}

/**
 * Rebuilds the response of a spend that was allowed. @throws Failure `idempotency_in_progress` while it runs; after an outage of the
 * decision, which may have hidden from this very call that it was allowed, that.
 */
async function recallSpend(
  call: Call,
  context: Context,
  { decisionId, outage }: { decisionId: string; outage?: Failure },
): Promise<Outcome> {
  const body = await call.recall(context, {
    decisionId,
    facts: await findDecisionFacts(context.database, decisionId),
  })
  if (body !== null) return { body, replayed: true, decisionId }
  throw outage ?? idempotencyInProgress()
}

/** Returns the outcome of a spend that was allowed, whatever its key may do since. @throws Failure of the tool. */
export async function recall(
  tool: Tool,
  caller: Omit<Context, 'afterCommit'>,
  { raw, decisionId }: { raw: unknown; decisionId: string },
): Promise<Outcome> {
  const { context, runLater } = committing(caller)
  const outcome = await recallSpend(tool.decode(raw), context, { decisionId })
  await runLater()
  return outcome
}

/** Applies proof, rail and policy to a new spend. An earlier allowed spend stands, whatever has changed since. */
async function admit(tool: Tool, call: Call, context: Context): Promise<SpendGate> {
  // Whatever keeps a call from its decision decided nothing: then an earlier call was allowed, whose money may be sent.
  let cutOff: unknown
  const decide: Context['reserve'] = (...request) =>
    context.reserve(...request).catch((error: unknown) => {
      cutOff = error
      throw error
    })
  try {
    const mustBeSigned = await requireProof(tool, call.raw, context)
    await requireRail(tool, context)
    return await reserve(tool, call, { ...context, reserve: decide }, { mustBeSigned })
  } catch (error) {
    const { principal, idempotencyKey: key } = context
    if (!(error instanceof Failure) || key === null || principal.kind === 'public') throw error
    const spent = {
      principal: idempotencyOwner(principal),
      key,
      fingerprint: hashSpendCall(context, tool.name, withoutProof(tool, context, call.input)),
    }
    const decisionId = await findAllowedDecision(context.database, spent)
    if (decisionId === undefined) throw error
    const isOutage = error === cutOff && failures[error.code].status === 503
    return { kind: 'repeated', decisionId, ...(isOutage && { outage: error }) }
  }
}

/** Wraps a transaction as a database; nested transactions join it. */
function within(database: Database, connection: Connection): Database {
  return { ...database, ...connection, transaction: (work) => work(connection) }
}

function asBody(answer: Json): Record<string, unknown> {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer))
    throw new Error('a stored response must be an object')
  return { ...answer }
}
