/** A journal for hledger. @see https://hledger.org/1.25/hledger.html#journal */

import { visibleText } from '../../core/base/untrusted-text.ts'
import { assetDecimals } from '../../core/money/money.ts'
import { otherName, signed, splitByAsset, titleOf } from './ledgers.ts'
import type { AccountStatement, Movement } from './read-statement.ts'

/** Ways of paying by the kind of the payment that is returned: its expense becomes less. */
const expenses: ReadonlyMap<string, string> = new Map([
  ['purchase', 'x402'],
  ['channel', 'x402'],
  ['card_transaction', 'card'],
])

const exchanged: ReadonlySet<string> = new Set(['order', 'swap'])

/**
 * The other side of what moved, by its kind. What is exchanged for something else is neither income nor expense, but for its fee; what
 * is taken back makes less of the income or expense that it was.
 */
function nameOther({ category, direction, refundOf, object, amount, fee }: Movement): string {
  const isFee = direction === 'out' && fee === amount
  const isExchanged = exchanged.has(object.kind) || category === 'invest' || category === 'fill'
  if (isExchanged && !isFee) return 'equity:conversion'
  if (category === 'deposit_return') return 'income:deposit'
  const paidBy = refundOf === null ? undefined : expenses.get(refundOf.kind)
  const name = (paidBy ?? category).replaceAll(/[^a-z0-9_]/g, '')
  if (direction === 'out' || refundOf !== null) return `expenses:${name}`
  return `income:${name}`
}

/** Names of more than letters stand in quotes. */
function commodity(asset: string): string {
  return /^[A-Z]+$/.test(asset) ? asset : `"${asset.replaceAll(/[^A-Z0-9.]/g, '')}"`
}

const MAX_TEXT = 200

export function writeHledger(statement: AccountStatement): string {
  const { accountId, period, from, to, balances, movements } = statement
  const assetAccount = (asset: string) => `assets:bursar:${asset}`
  const accounts = new Set([
    'equity:opening balances',
    ...balances.map(({ asset }) => assetAccount(asset)),
    ...movements.map(nameOther),
  ])
  const lastDay = new Date(new Date(to).getTime() - 1).toISOString().slice(0, 10)
  const ledgers = splitByAsset(statement)
  return [
    `; Statement of ${accountId}, ${period}, in UTC.`,
    '',
    ...[...accounts].sort().map((account) => `account ${account}`),
    '',
    ...balances.map(({ asset }) => `commodity 1${'.'.padEnd(1 + digitsOf(asset), '0')} ${commodity(asset)}`),
    '',
    `${from.slice(0, 10)} * opening balances`,
    ...ledgers.flatMap(({ asset, opening }) =>
      posting(assetAccount(asset), `${opening} ${commodity(asset)}`),
    ),
    '    equity:opening balances',
    '',
    ...movements.flatMap((movement) => [
      `${movement.at.slice(0, 10)} * (${code(movement.id)}) ${plain(titleOf(movement, MAX_TEXT))}`,
      ...comments(movement),
      posting(assetAccount(movement.asset), `${signed(movement)} ${commodity(movement.asset)}`),
      `    ${nameOther(movement)}`,
      '',
    ]),
    `${lastDay} * closing balances`,
    ...ledgers.map(({ asset, closing }) =>
      posting(assetAccount(asset), `0 ${commodity(asset)} = ${closing} ${commodity(asset)}`),
    ),
    '',
  ].join('\n')
}

function digitsOf(asset: string): number {
  const money = Object.entries(assetDecimals).find(([name]) => name === asset)
  return money?.[1] ?? 9
}

function posting(account: string, amount: string): string {
  return `    ${account.padEnd(32)}  ${amount}`
}

/** Tags end at a comma and lines at a line break, so that no text has either; nothing in it starts another comment. */
function comments(movement: Movement): readonly string[] {
  const { at, object, refundOf, task, agentId, memo, usd, fee, transactionHash } = movement
  const payee = otherName(movement)
  const tags = {
    at,
    object: `${object.kind} ${object.id}`,
    ...(refundOf === null ? {} : { refund: `${refundOf.kind} ${refundOf.id}` }),
    ...(payee === null ? {} : { payee }),
    ...(agentId === null ? {} : { agent: agentId }),
    ...(task === null ? {} : { task }),
    ...(usd === null ? {} : { usd }),
    ...(fee === '0' ? {} : { fee }),
    ...(transactionHash === null ? {} : { transaction: transactionHash }),
    ...(memo === null ? {} : { memo }),
  }
  return Object.entries(tags).map(([name, value]) => `    ; ${name}:${tagValue(value)}`)
}

function tagValue(text: string): string {
  return plain(text)
    .replaceAll(/[,[\]]/g, ' ')
    .slice(0, MAX_TEXT)
}

/** Text that ends no field: `;` starts a comment and `|` splits payee and note. */
function plain(text: string): string {
  return visibleText(text).replaceAll(/[;|]/g, ' ')
}

function code(id: string): string {
  return id.replaceAll(/[^A-Za-z0-9_.:-]/g, '')
}
