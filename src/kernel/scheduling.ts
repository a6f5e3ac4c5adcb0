/**
 * Scheduled calls: judged when they are scheduled, and made at their due times. Each is decided afresh, as the key or the owner that it
 * is made for, and pays once: its idempotency key and the facts of its decision name its due time.
 */
import { z } from 'zod'
import { requestApproval } from '../books/approvals/approvals.ts'
import { firstIdAt } from '../core/base/ids.ts'
import { parseJson, toJson, writeJson } from '../core/base/json.ts'
import type { Principal } from '../core/base/principal.ts'
import { Failure, type FailureCode, failures } from '../core/failures/failure.ts'
import { toDecimal, toMoney } from '../core/money/money.ts'
import { minimum } from '../core/money/shares.ts'
import { onChain } from '../providers/chain/chains.ts'
import { namedPayee } from '../records/contacts/payee.ts'
import {
  type ClaimedRun,
  changeStatus,
  claimDue,
  endRun,
  findKeyless,
  findLastPrice,
  findWaitMs,
  PAYEE_CHANGED,
  postponeRun,
  type RunOutcome,
  reclaimRuns,
  type Schedule,
  type ScheduledOperation,
} from '../records/schedules/store.ts'
import type { Connection, Database, Statement } from '../storage/database.ts'
import type { Context, FindScheduledCaller, ScheduledCall, Scheduling, Services } from './context.ts'
import { hashCall } from './fingerprint.ts'
import { DEFAULT_TTL_SECONDS } from './gates/approval.ts'
import { parsePolicy } from './gates/policy.ts'
import { requireScope } from './gates/scope.ts'
import { resolvePayee } from './resolve-payee.ts'
import { type Outcome, recall, run } from './run.ts'
import type { Tool } from './tool.ts'

type FindTool = (operation: string) => Tool

/** @param tools all tools. */
export function createScheduling(tools: readonly Tool[]): Scheduling {
  const findTool: FindTool = (operation) => {
    const tool = tools.find(({ name }) => name === operation)
    if (tool === undefined) throw new Error(`unknown operation ${operation}`)
    return tool
  }
  return {
    admit: (context, call) => admit(context, call, findTool),
    findWaitMs: ({ database, clock, onCalendar }) => {
      const at = clock()
      return findWaitMs(database, { now: onCalendar(at), at })
    },
    runDue: (services, findCaller, signal) => runDue(services, { findTool, findCaller }, signal),
  }
}

/** Members that are of one call only. */
const ofOneCall = ['signature', 'intentId', 'quoteId', 'clientOrderId', 'idempotency_key'] as const

/** What a plan of the first call says of all of them; what a vendor, a price or a balance says may be otherwise by then. */
const lasting: ReadonlySet<FailureCode> = new Set([
  'invalid_request',
  'not_found',
  'chain_not_supported',
  'signature_rejected',
  'url_not_allowed',
  'payout_rejected',
  'order_rejected',
])

async function admit(context: Context, { operation, input }: ScheduledCall, findTool: FindTool) {
  const tool = findTool(operation)
  requireScope(tool, context.principal)
  const single = ofOneCall.find((name) => isMember(input, name))
  if (single !== undefined) throw invalid(`input.${single}`, 'is of one call only, and a schedule makes many')
  const { raw, payee } = await resolvePayee({ ...context, idempotencyKey: null }, tool, input)
  const call = tool.decode(raw)
  if (!call.isWhole)
    throw invalid('input', 'has a login or a body that is not kept, so that only its caller can send it')
  if (isMember(input, 'chain')) onChain(context, String(input.chain))
  // A purchase would ask its seller; what it sells and for how much is known when it is due.
  if (operation !== 'purchases.buy')
    await call.spend?.({ ...context, scheduledFor: 'planned' }).catch((error: unknown) => {
      if (!(error instanceof Failure)) throw error
      if (lasting.has(error.code)) throw error
    })
  return { raw: call.raw, input: call.input, payee }
}

function isMember<Name extends string>(input: unknown, name: Name): input is Record<Name, unknown> {
  return typeof input === 'object' && input !== null && Object.hasOwn(input, name)
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}

interface Finders {
  readonly findTool: FindTool
  readonly findCaller: FindScheduledCaller
}

/** Calls that one gateway makes at a time. */
const AT_ONCE = 8
const KEYLESS = 100
/** Pause before a call is tried again that a provider did not answer. */
const RETRY_MS = 15_000

async function runDue(services: Services, finders: Finders, signal: AbortSignal): Promise<number> {
  const { database, clock, onCalendar, log } = services
  const startedAt = clock()
  for (const schedule of await findKeyless(database, { now: startedAt, limit: KEYLESS }))
    await endKeyless(services, schedule)
  let found = 0
  while (!signal.aborted) {
    const at = clock()
    const left = await reclaimRuns(database, { at, limit: AT_ONCE })
    const limit = AT_ONCE - left.length
    const due = limit === 0 ? [] : await claimDue(database, { now: onCalendar(at), at, limit })
    const calls = [
      ...left.map((claimed) => makeCall(services, claimed, { ...finders, isNew: false })),
      ...due.map((claimed) => makeCall(services, claimed, { ...finders, isNew: true })),
    ]
    if (calls.length === 0) break
    found += calls.length
    for (const made of await Promise.allSettled(calls))
      if (made.status === 'rejected')
        log.error({ err: made.reason }, 'a scheduled call failed and will be repeated')
  }
  return found
}

/** Ends a schedule whose key has ended. */
async function endKeyless(services: Services, schedule: Schedule): Promise<void> {
  const now = services.onCalendar(services.clock())
  await services.database.transaction(async (connection) => {
    const { status } = await changeStatus(connection, schedule, { status: 'ended', at: now })
    await recordBySystem(services, connection, { schedule, status, reason: 'key_ended' })
  })
}

function recordBySystem(
  { journal, clock }: Pick<Services, 'journal' | 'clock'>,
  connection: Connection,
  { schedule, status, reason }: { schedule: Schedule; status: Schedule['status']; reason: string },
): Promise<void> {
  return journal(connection, {
    accountId: schedule.account_id,
    actor: { kind: 'system', id: null },
    action: `schedule.${status}`,
    object: { kind: 'schedule', id: schedule.id },
    before: { status: schedule.status },
    after: { status, reason },
    at: clock(),
  })
}

/** Makes the call of a due time, or finds out what became of it. It is left to a later try where that is not known. */
async function makeCall(
  services: Services,
  { schedule, run: due }: ClaimedRun,
  { findTool, findCaller, isNew }: Finders & { isNew: boolean },
): Promise<void> {
  const { database, clock, onCalendar } = services
  const at = clock()
  const end = (outcome: RunOutcome) => finish(services, { schedule, run: due }, outcome)
  if (due.approval_id !== null) {
    const asked = await followApproval(database, { id: due.approval_id, now: onCalendar(at) })
    if (asked === 'waits') return postponeRun(database, due, { until: new Date(at.getTime() + RETRY_MS) })
    return end('body' in asked ? read(schedule, asked.body, asked.decisionId) : asked)
  }
  const name = `${schedule.id} ${due.at.toISOString()}`
  const decisionId = isNew
    ? undefined
    : await findAllowed(database, schedule, { name, since: due.claimed_at })
  const isLate = onCalendar(at).getTime() - due.at.getTime() > schedule.grace_hours * 3_600_000
  if (decisionId === undefined && !isNew) {
    if (schedule.status !== 'active') return end({ status: 'denied', reason: schedule.status })
    if (isLate)
      return end(due.reason === null ? { status: 'missed' } : { status: 'failed', reason: due.reason })
  }
  const principal = await findPrincipal(database, schedule, findCaller)
  if (decisionId === undefined && !mayAct(principal, at))
    return end({ status: 'denied', reason: 'unknown_key' })
  const { raw, isGuarded } = await guardPrice(database, schedule, due)
  const payee = namedPayee.nullable().parse(schedule.payee)
  const caller = {
    ...services,
    ...(payee === null ? {} : { payee }),
    principal,
    requestId: services.newId('req', at),
    now: at,
    idempotencyKey: `${schedule.id}:${due.at.toISOString()}`,
    scheduledFor: name,
  }
  const tool = findTool(schedule.operation)
  try {
    const made: Outcome =
      decisionId === undefined
        ? await run(tool, caller, raw)
        : await recall(tool, caller, { raw, decisionId })
    return await end(read(schedule, made.body, made.decisionId ?? undefined))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { code, members } = error
    if (mayPass(error)) {
      const until = new Date(at.getTime() + RETRY_MS)
      const asked = code === 'approval_required' ? { approvalId: members.approvalId } : {}
      return postponeRun(database, due, { until, reason: code, ...asked })
    }
    const isDenied = denials.has(code) || (isGuarded && code === 'terms_not_payable')
    return end({
      status: isDenied ? 'denied' : 'failed',
      reason: members.reason === PAYEE_CHANGED ? PAYEE_CHANGED : code,
      ...(members.decisionId === undefined ? {} : { decisionId: members.decisionId }),
    })
  }
}

/** Failures that say no, where others say that something is missing or broken. */
const denials: ReadonlySet<FailureCode> = new Set([
  'policy_denied',
  'payee_changed',
  'price_changed',
  'approval_rejected',
  'insufficient_scope',
  'account_locked',
  'unknown_key',
  'kyc_required',
  'aml_blocked',
  'rail_disabled',
  'signature_rejected',
])

/** Whether the same call may succeed later. What a seller answered is its answer for this time. */
function mayPass({ code, members }: Failure): boolean {
  if (code === 'seller_failed' || members.isFinal === true) return false
  if (code === 'approval_required') return members.reason === undefined || members.reason === 'running'
  return failures[code].retry || code === 'conflict'
}

async function findPrincipal(
  database: Connection,
  { id, account_id, key_id, created_at }: Schedule,
  { findKey, findAccount }: FindScheduledCaller,
): Promise<Exclude<Principal, { kind: 'public' }>> {
  if (key_id !== null) return { kind: 'key', ...(await findKey(database, { id: key_id })) }
  const account = await findAccount(database, account_id)
  if (account === undefined) throw new Error(`${account_id} does not exist`)
  // It proves nothing and can do nothing but what was agreed to.
  const session = {
    id,
    createdAt: created_at,
    isDevice: true,
    steppedUpAt: null,
    tokenHolder: 'browser',
    tokenExpiresAt: created_at,
    expiresAt: created_at,
  } as const
  const person = { id: account.id, status: account.status, role: 'owner' } as const
  return { kind: 'session', account, person, session }
}

function mayAct(principal: Exclude<Principal, { kind: 'public' }>, now: Date): boolean {
  if (principal.kind === 'session') return true
  const { status, expiresAt } = principal.key
  return status !== 'revoked' && (expiresAt === null || expiresAt > now)
}

const scheduledDecision: Statement = {
  name: 'decision_of_schedule',
  text: `select d.id from decision d
    where d.account_id = $1 and d.id >= $2 and d.verdict = 'allow' and d.facts ->> 'schedule' = $3 limit 1`,
}

/** Finds the decision that allowed the call of a due time, for as long as there are decisions. */
async function findAllowed(
  database: Connection,
  { account_id }: Schedule,
  { name, since }: { name: string; since: Date },
): Promise<string | undefined> {
  const [row] = await database.call<{ id: string }>(scheduledDecision, [
    account_id,
    firstIdAt('dec', since),
    name,
  ])
  return row?.id
}

/** What became of a call that its owner was asked for. */
async function followApproval(
  { kysely }: Connection,
  { id, now }: { id: string; now: Date },
): Promise<'waits' | RunOutcome | { body: Record<string, unknown>; decisionId: string | undefined }> {
  const asked = await kysely
    .selectFrom('approval')
    .select(['status', 'expires_at', 'answer', 'problem', 'used_by'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  if (asked.answer !== null)
    return {
      body: z.record(z.string(), z.unknown()).parse(asked.answer),
      decisionId: asked.used_by ?? undefined,
    }
  if (asked.problem !== null)
    return { status: 'failed', reason: z.looseObject({ code: z.string() }).parse(asked.problem).code }
  const isOpen = asked.status === 'approved' || (asked.status === 'pending' && asked.expires_at > now)
  return isOpen ? 'waits' : { status: 'denied', reason: 'approval_rejected' }
}

const objects: Readonly<Record<ScheduledOperation, { kind: string; member: string }>> = {
  'wallets.transfer': { kind: 'transfer', member: 'transferId' },
  'banking.payouts.create': { kind: 'payout', member: 'id' },
  'purchases.buy': { kind: 'purchase', member: 'purchaseId' },
  'investing.order': { kind: 'order', member: 'id' },
}

/** Reads the outcome of a call from its answer. A purchase that was paid and did not come has failed. */
function read(
  { operation }: Schedule,
  body: Record<string, unknown>,
  decisionId: string | undefined,
): RunOutcome {
  const { kind, member } = objects[operation]
  const id = body[member]
  const isPurchase = operation === 'purchases.buy'
  return {
    status: isPurchase && body.status === 'undelivered' ? 'failed' : 'completed',
    ...(isPurchase && body.status === 'undelivered' ? { reason: 'undelivered' } : {}),
    ...(typeof id === 'string' ? { object: { kind, id } } : {}),
    ...(decisionId === undefined ? {} : { decisionId }),
    ...(isPurchase && typeof body.charged === 'string' && body.status !== 'free'
      ? { price: body.charged }
      : {}),
  }
}

const guard = z.looseObject({ max: z.string(), risePct: z.number().optional() })
const priced = z.looseObject({
  maxAmount: z.union([z.string(), z.number()]),
  asset: z.enum(['USDC', 'EURC', 'PYUSD']).optional(),
})

/** The input of a call: of a purchase, the most that it may cost is also what its guard allows. */
async function guardPrice(
  database: Connection,
  schedule: Schedule,
  due: ClaimedRun['run'],
): Promise<{ raw: unknown; isGuarded: boolean }> {
  const raw = parseJson(schedule.input)
  if (schedule.price_guard === null) return { raw, isGuarded: false }
  const { max, risePct } = guard.parse(schedule.price_guard)
  const { maxAmount, asset = 'USDC', ...rest } = priced.parse(raw)
  const units = (amount: string) => toMoney(asset, amount).units
  const last = risePct === undefined ? null : await findLastPrice(database, due)
  const raised =
    last === null || risePct === undefined
      ? []
      : [(units(last) * BigInt(10_000 + Math.round(risePct * 100))) / 10_000n]
  const most = [units(String(maxAmount)), units(max), ...raised].reduce(minimum)
  return { raw: { ...rest, asset, maxAmount: toDecimal({ asset, units: most }) }, isGuarded: true }
}

/** Ends a run, and asks the owner about a schedule that has failed too often. */
async function finish(
  services: Services,
  { schedule, run: due }: ClaimedRun,
  outcome: RunOutcome,
): Promise<void> {
  const now = services.onCalendar(services.clock())
  await services.database.transaction(async (connection) => {
    const after = await endRun(connection, due, outcome, now)
    if (after === undefined || after.status === schedule.status) return
    if (after.status === 'failing') await askWhetherToGoOn(services, connection, after)
    if (after.status === 'failing' || after.status === 'ended')
      await recordBySystem(services, connection, {
        schedule,
        status: after.status,
        reason: after.status === 'ended' ? 'over' : (outcome.reason ?? outcome.status),
      })
  })
}

/** A key's schedule goes on when its owner approves; the owner is told of any by its event. */
async function askWhetherToGoOn(
  { database, newId, clock, onCalendar }: Services,
  connection: Connection,
  { id, account_id: accountId, key_id: keyId, updated_at }: Schedule,
): Promise<void> {
  if (keyId === null) return
  const joined: Database = { ...database, ...connection, transaction: (work) => work(connection) }
  const key = await connection.kysely
    .selectFrom('access_key')
    .select(['id', 'policy', 'policy_version as policyVersion'])
    .where('id', '=', keyId)
    .executeTakeFirstOrThrow()
  await requestApproval(
    { database: joined, newId },
    {
      accountId,
      keyId,
      decisionId: null,
      operation: 'schedules.resume',
      input: writeJson({ id, status: 'active' }),
      fingerprint: hashCall('schedules.resume', toJson({ id, at: updated_at.toISOString() })),
      idempotencyKey: null,
      reason: null,
      violations: [],
      ttlSeconds: parsePolicy(key)?.approval?.ttlSec ?? DEFAULT_TTL_SECONDS,
      at: onCalendar(clock()),
      isAsked: false,
      isReplayed: false,
      awaitsCaller: false,
    },
  )
}
