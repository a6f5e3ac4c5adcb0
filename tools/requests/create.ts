import { z } from 'zod'
import { randomToken } from '../../src/core/base/ids.ts'
import { visibleText } from '../../src/core/base/untrusted-text.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { createCreditorReference } from '../../src/core/money/creditor-reference.ts'
import {
  type Asset,
  amountMismatch,
  decimalAmount,
  stablecoins,
  toMoney,
} from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findVirtualAccount } from '../../src/rails/banking/store.ts'
import { insertRequest } from '../../src/records/requests/store.ts'
import { requestView, viewRequest } from '../../src/records/requests/view.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
const MAX_DAYS = 366

const TOKEN_BYTES = 18

/** Text for strangers: one line that reads in one direction. */
const shownText = (length: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(length)
    .refine((text) => /^[^\p{Cc}\p{Zl}\p{Zp}]*$/u.test(text), 'must be one line')
    .overwrite((text) => visibleText(text.normalize('NFC')))
    .refine((text) => text !== '', 'must have visible characters')

export default defineTool({
  name: 'requests.create',
  title: 'Request money',
  summary: 'Ask somebody for money, by a link that is paid by transfer, by x402 or by bank.',
  description:
    'Use it to invoice a person or another agent: give a person `url`, an agent `x402Url`, a bank payer `reference`. Read `requests_get` until `paid`.',
  restDescription:
    'The page shows the amount, `memo` and `payee`, the wallet’s address, and what `virtualAccountId` names; nothing else of the account. A plain transfer counts if exactly one open request waits for its amount.',
  route: 'POST /api/requests',
  who: 'account',
  scopes: ['requests:create'],
  effect: 'write',
  // It promises nothing, and moves no money.
  proof: 'none',
  mcp: true,
  input: z.strictObject({
    amount: decimalAmount.describe('Decimal of the asset.'),
    asset: z
      .enum([...stablecoins, 'USD', 'EUR', 'GBP'])
      .default('USDC')
      .describe('Default: `USDC`.'),
    memo: shownText(140).optional().describe('What it is for, shown to whoever pays.'),
    payee: shownText(80).optional().describe('Name of the payee on the page. Default: none.'),
    expiresAt: z.iso
      .datetime({ offset: true, error: 'must be an ISO 8601 time with its offset' })
      .max(40)
      .optional()
      .describe('Default: in 30 days; at most 366.'),
    virtualAccountId: z
      .string()
      .max(64)
      .optional()
      .describe('`va_…`: its bank details are on the page. Its deposits must become `asset`.'),
  }),
  output: requestView,
  failures: ['not_found', 'conflict'],
  example: { amount: '25', memo: 'Invoice 12' },
  run: async (context, { amount, asset, memo = null, payee = null, expiresAt, virtualAccountId = null }) => {
    const caller = requireCaller(context)
    const { now, settings, database } = context
    const mismatch = amountMismatch(amount, asset)
    if (mismatch !== undefined) throw invalidMember('amount', mismatch)
    await requirePayable(context, { asset, virtualAccountId, accountId: caller.account.id })
    const request = await insertRequest(database, {
      id: context.newId('req', now),
      account_id: caller.account.id,
      key_id: caller.kind === 'key' ? caller.key.id : null,
      token: randomToken(TOKEN_BYTES),
      reference: createCreditorReference(),
      virtual_account_id: virtualAccountId,
      asset,
      units: toMoney(asset, amount).units,
      memo,
      payee,
      expires_at: readExpiry(expiresAt, context.onCalendar(now)),
      created_at: now,
      updated_at: now,
    })
    await recordChange(context, {
      action: 'request.created',
      object: { kind: 'request', id: request.id },
      after: { asset, amount, expiresAt: request.expires_at.toISOString() },
    })
    return viewRequest(request, [], { now: context.onCalendar(now), origin: settings.origin })
  },
})

function readExpiry(given: string | undefined, now: Date): Date {
  if (given === undefined) return new Date(now.getTime() + DEFAULT_DAYS * DAY_MS)
  const expiry = new Date(given)
  if (expiry <= now) throw invalidMember('expiresAt', 'is over')
  if (expiry.getTime() > now.getTime() + MAX_DAYS * DAY_MS)
    throw invalidMember('expiresAt', `must be within ${MAX_DAYS} days`)
  return expiry
}

/** Requires a way to pay it. @throws Failure `not_found`, `invalid_request`. */
async function requirePayable(
  { database, chains, principal }: Context,
  {
    asset,
    virtualAccountId,
    accountId,
  }: { asset: Asset; virtualAccountId: string | null; accountId: string },
): Promise<void> {
  if (virtualAccountId === null) {
    const token = stablecoins.find((one) => one === asset)
    if (token !== undefined && chains.all.some(({ tokens }) => tokens[token] !== undefined)) return
    if (token !== undefined) throw invalidMember('asset', 'is on no chain of this deployment')
    throw invalidMember('virtualAccountId', `is needed: ${asset} arrives at a bank account only`)
  }
  // The page publishes its details.
  if (principal.kind === 'key' && !principal.key.scopes.includes('banking:read'))
    throw new Failure('insufficient_scope', `The key "${principal.key.name}" lacks banking:read.`, {
      scopes: ['banking:read'],
      hint: 'Leave `virtualAccountId` out, or ask the owner for the scope.',
    })
  const account = await findVirtualAccount(database, { id: virtualAccountId })
  if (account?.accountId !== accountId)
    throw new Failure('not_found', 'You have no such virtual account.', {
      hint: 'Read GET /api/banking/virtual-accounts.',
    })
  const becomes = account.destination?.token ?? account.currency
  if (account.status !== 'active') throw invalidMember('virtualAccountId', `is ${account.status}`)
  if (becomes !== asset)
    throw invalidMember('virtualAccountId', `its deposits become ${becomes}, not ${asset}`)
}

function invalidMember(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}
