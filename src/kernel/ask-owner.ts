/** Requests for exceptions: a key asks its owner for exactly one call that its policy denies. Nothing is held or counted. */
import { z } from 'zod'
import {
  type Approval,
  belongsToAnotherCall,
  findAskedApproval,
  hasTooManyOpen,
  requestApproval,
} from '../books/approvals/approvals.ts'
import { writeJson } from '../core/base/json.ts'
import { visibleText } from '../core/base/untrusted-text.ts'
import { Failure } from '../core/failures/failure.ts'
import { idempotencyKeyReused } from '../core/failures/idempotency-failures.ts'
import type { AskOwner, Context, ExceptionRequest } from './context.ts'
import { hashSpendCall } from './fingerprint.ts'
import { buildOwnerRejection, DEFAULT_TTL_SECONDS, tooManyOpen } from './gates/approval.ts'
import { parsePolicy } from './gates/policy.ts'
import { requireRail } from './gates/rail.ts'
import { requireScope } from './gates/scope.ts'
import { judgeException } from './gates/spend.ts'
import { findOwnerChange } from './owner-changes.ts'
import { keepContactIds } from './policy-contacts.ts'
import { resolvePayee } from './resolve-payee.ts'
import type { Tool } from './tool.ts'

const members = z.record(z.string(), z.unknown())

/** @param tools all tools; only spends, and changes that the owner makes, can be asked for. */
export function createAskOwner(tools: readonly Tool[]): AskOwner {
  const findTool = (name: string) => tools.find((tool) => tool.name === name)
  return (context, request) => askOwner(context, { request, findTool })
}

async function askOwner(
  context: Context,
  { request, findTool }: { request: ExceptionRequest; findTool: (name: string) => Tool | undefined },
): Promise<Approval> {
  const { principal, database } = context
  const at = context.onCalendar(context.now)
  if (principal.kind !== 'key')
    throw new Failure('conflict', 'Only a key asks its owner for an approval.', {
      hint: 'No spend policy applies to a person: make the call itself.',
    })
  const { account, key } = principal
  const { operation } = request
  const change = findOwnerChange(operation)
  const tool = findTool(change?.tool ?? operation)
  if (tool === undefined) throw new Error(`unknown operation ${operation}`)
  if (tool.who === 'account') requireScope(tool, principal)
  await requireRail(tool, context)
  const { idempotencyKey, input } = splitKey(request.input)
  const { raw, payee } = await resolvePayee(
    { ...context, idempotencyKey },
    tool,
    change === undefined ? input : change.toInput(members.parse(await keepContactIds(context, input)), key),
  )
  const call = tool.decode(raw)
  const fingerprint = hashSpendCall(context, operation, call.input)
  const own = { keyId: key.id, fingerprint, idempotencyKey, at }
  if (await belongsToAnotherCall(database, own)) throw idempotencyKeyReused()
  const waits = (await findAskedApproval(database, own))?.status === 'pending'
  if (!waits && (await hasTooManyOpen(database, { accountId: account.id, keyId: key.id, at })))
    throw tooManyOpen()
  const { decisionId, violations } =
    change === undefined
      ? await judgeException(tool, call, payee === null ? context : { ...context, payee })
      : { decisionId: null, violations: [] }
  const approval = await requestApproval(context, {
    ...own,
    accountId: account.id,
    decisionId,
    operation,
    input: writeJson(call.raw),
    payee,
    reason: visibleText(request.reason),
    violations,
    ttlSeconds: parsePolicy(key)?.approval?.ttlSec ?? DEFAULT_TTL_SECONDS,
    isAsked: true,
    isReplayed: false,
    awaitsCaller: !call.isWhole,
  })
  if (approval === undefined) throw tooManyOpen()
  if (approval.status === 'rejected') throw buildOwnerRejection(approval, 'this call')
  return approval
}

/** Takes the `idempotency_key` out of a call, as over MCP: the call runs under it, and can be repeated. */
function splitKey(given: Readonly<Record<string, unknown>>) {
  const { idempotency_key: idempotencyKey = null, ...input } = given
  if (idempotencyKey === null) return { input, idempotencyKey }
  if (typeof idempotencyKey === 'string' && /^[\x21-\x7e]{1,255}$/.test(idempotencyKey))
    return { input, idempotencyKey }
  const message = 'must be 1 to 255 visible ASCII characters'
  throw invalid('input.idempotency_key', message)
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}
