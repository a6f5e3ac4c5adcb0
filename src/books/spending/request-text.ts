/** A spend as the database reads it: the members of its type `spend_request`, and the row of a rail. */
import type { BudgetRule } from '../../../policies/budget.ts'
import { available, held, pursePlace } from '../ledger/accounts.ts'
import { windowsText } from './outflows.ts'
import type { OrderRow, PathLimits, SpendRequest, TransferRow } from './spend-request.ts'

/** Serializes a request as a JSON object. */
export function requestText(request: SpendRequest): string {
  const { key, idempotency, money, place, windows = [] } = request
  const plain = {
    decision: request.decisionId,
    account: request.accountId,
    key: key?.id ?? null,
    policy_version: key?.policyVersion ?? null,
    policy_hash: request.policyHash,
    operation: request.operation,
    facts: request.facts,
    violations: request.violations,
    asset: money.asset,
    units: money.units,
    usd_micros: request.usdMicros,
    daily_max: key?.limits.dailyMaxMicros ?? null,
    daily_count: key?.limits.dailyMaxCount ?? null,
    counterparty: request.counterparty?.toLowerCase() ?? null,
    cooldown_seconds: request.cooldownSeconds,
    needs_approval: request.needsApproval,
    is_approved: request.isApproved,
    source: place === null ? null : available(request.accountId, place),
    held: place === null ? null : held(request.accountId, place),
    principal: idempotency?.principal ?? null,
    idempotency_key: idempotency?.key ?? null,
    fingerprint: idempotency?.fingerprint ?? null,
    at: request.at,
    mac: request.mac ?? null,
    subject: request.review?.subject ?? null,
    released: request.review?.released ?? null,
    approval: request.approvalId ?? null,
    repeat: key?.limits.repeat,
    nonce: request.nonce?.value ?? null,
    nonce_expires_at: request.nonce?.expiresAt ?? null,
  }
  // These members are JSON text already.
  const texts = {
    windows: windows.length === 0 ? null : windowsText(windows),
    budgets: budgetsText(key?.limits.longer ?? []),
    transfer: request.transfer == null ? null : transferText(request.transfer),
    purse: request.purse == null ? null : purseText(request, request.purse),
    order: request.order == null ? null : orderText(request.order),
    purchase: request.purchase ?? null,
    path: key?.path === undefined ? null : pathText(key.path),
    funding: request.funding == null ? null : fundingText(request, request.funding),
  }
  const members = Object.entries(texts).flatMap(([name, text]) =>
    text === null ? [] : [`,"${name}":${text}`],
  )
  const text = JSON.stringify(plain, (_name, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
  return `${text.slice(0, -1)}${members.join('')}}`
}

function purseText(
  { accountId }: Pick<SpendRequest, 'accountId'>,
  { id, chunk, isOnly = false }: NonNullable<SpendRequest['purse']>,
): string {
  const place = pursePlace(id)
  return JSON.stringify({
    source: available(accountId, place),
    held: held(accountId, place),
    chunk: chunk.toString(),
    ...(isOnly ? { only: true } : {}),
  })
}

function fundingText(
  { accountId }: Pick<SpendRequest, 'accountId'>,
  { id, place, units, needed, row }: NonNullable<SpendRequest['funding']>,
): string {
  const text = JSON.stringify({
    id,
    source: available(accountId, place),
    held: held(accountId, place),
    units: units.toString(),
    needed: needed.toString(),
  })
  return row === undefined ? text : `${text.slice(0, -1)},${row}}`
}

/** Serializes rules as the JSON text that the database functions read; null for none. */
function budgetsText(rules: readonly BudgetRule[]): string | null {
  return rules.length === 0 ? null : JSON.stringify(rules.map(budgetMembers))
}

/** A rule as `budget_exceeded` reads it. */
export function budgetMembers({ rule, period, maxMicros, maxCount }: BudgetRule) {
  return { rule, period, max_micros: maxMicros?.toString() ?? null, max_count: maxCount }
}

function pathText(path: readonly PathLimits[]): string {
  return JSON.stringify(
    path.map(({ id, policyVersion, budgets, cooldownSeconds, repeat }) => ({
      key: id,
      version: policyVersion,
      budgets: budgets.length === 0 ? null : budgets.map(budgetMembers),
      cooldown_seconds: cooldownSeconds,
      repeat,
    })),
  )
}

/** Serializes a transfer's row as the JSON text that the database functions read. */
export function transferText({
  authorization,
  validUntil,
  intentId,
  units,
  route,
  fundingId,
  ...row
}: TransferRow): string {
  return JSON.stringify({
    ...row,
    units: units.toString(),
    authorized: authorization,
    valid_until: validUntil,
    intent: intentId,
    ...(fundingId === undefined ? {} : { funding: fundingId }),
    ...(route === undefined ? {} : { route: { ...route, minReceived: route.minReceived.toString() } }),
  })
}

/** Serializes an order's row as the JSON text that the database functions read. */
export function orderText({ notional, qty, limitPrice, referencePrice, ...row }: OrderRow): string {
  return JSON.stringify({
    id: row.id,
    client_order_id: row.clientOrderId,
    asked: row.asked,
    symbol: row.symbol,
    side: row.side,
    type: row.type,
    notional: notional.toString(),
    qty: qty?.toString() ?? null,
    limit_price: limitPrice?.toString() ?? null,
    reference_price: referencePrice.toString(),
    submitted_at: row.submittedAt,
  })
}
