/** Requests for exceptions: a key asks its owner for exactly one call that its policy denies. Nothing is held or counted. */
import { writeJson } from '../base/json.ts'
import { visibleText } from '../base/untrusted-text.ts'
import { Failure } from '../failures/failure.ts'
import {
  type Approval,
  countOpenExceptions,
  MAX_OPEN_EXCEPTIONS,
  requestException,
} from '../spending/approvals.ts'
import type { AskOwner, Context, ExceptionRequest } from './context.ts'
import { fingerprintOf } from './fingerprint.ts'
import { DEFAULT_TTL_SECONDS } from './gates/approval.ts'
import { policyOf } from './gates/policy.ts'
import { requireRail } from './gates/rail.ts'
import { requireScope } from './gates/scope.ts'
import { judgeException } from './gates/spend.ts'
import type { Tool } from './tool.ts'

/** @param tools all tools; only spends can be asked for. */
export function createAskOwner(tools: readonly Tool[]): AskOwner {
  const spends = tools.filter(({ effect, mcp }) => effect === 'spend' && mcp)
  return (context, request) => askOwner(context, { request, spends })
}

async function askOwner(
  context: Context,
  { request, spends }: { request: ExceptionRequest; spends: readonly Tool[] },
): Promise<Approval> {
  const { principal, database, now: at } = context
  if (principal.kind !== 'key')
    throw new Failure('conflict', 'Only a key asks its owner for an approval.', {
      hint: 'No spend policy applies to a person: make the call itself.',
    })
  const tool = spends.find(({ name }) => [name, name.replaceAll('.', '_')].includes(request.operation))
  if (tool === undefined) throw unknownOperation(spends)
  const { account, key } = principal
  requireScope({ ...tool, who: 'account' }, principal)
  await requireRail(tool, context)
  const { call, idempotencyKey } = decodeCall(tool, request.input)
  if ((await countOpenExceptions(database, { keyId: key.id, at })) >= MAX_OPEN_EXCEPTIONS) throw tooMany()
  const { decisionId, violations } = await judgeException(tool, call, context)
  const approval = await requestException(context, {
    accountId: account.id,
    keyId: key.id,
    decisionId,
    operation: tool.name,
    input: writeJson(call.raw),
    fingerprint: fingerprintOf(tool.name, call.input),
    idempotencyKey,
    reason: visibleText(request.reason),
    violations,
    ttlSeconds: policyOf(key)?.approval?.ttlSec ?? DEFAULT_TTL_SECONDS,
    at,
  })
  if (approval === undefined) throw tooMany()
  return approval
}

/** Decodes the call. Its `idempotency_key`, as over MCP, is the one under which the call runs and can be repeated. */
function decodeCall(tool: Tool, given: Readonly<Record<string, unknown>>) {
  const { idempotency_key: idempotencyKey = null, ...input } = given
  if (idempotencyKey === null) return { call: tool.decode(input), idempotencyKey }
  if (typeof idempotencyKey === 'string' && /^[\x21-\x7e]{1,255}$/.test(idempotencyKey))
    return { call: tool.decode(input), idempotencyKey }
  const message = 'must be 1 to 255 visible ASCII characters'
  throw invalid('input.idempotency_key', message)
}

function unknownOperation(spends: readonly Tool[]): Failure {
  return invalid('operation', `must be one of ${spends.map(({ name }) => name).join(', ')}`)
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}

function tooMany(): Failure {
  return new Failure('conflict', `The key already has ${MAX_OPEN_EXCEPTIONS} open requests for approval.`, {
    reason: 'too_many_open',
    hint: 'Wait for the owner, or withdraw one of them: DELETE /api/approvals/{id}.',
  })
}
