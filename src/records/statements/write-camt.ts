/**
 * ISO 20022 camt.053.001.08: one statement per asset, in the currency that it is or stands for. Amounts have at most five fraction digits
 * there, so each is the difference of two balances rounded to five: they add up. Shares have no currency and are left out.
 * @see https://www.iso20022.org/iso-20022-message-definitions
 */
import { createHash } from 'node:crypto'
import { create } from 'xmlbuilder2'
import { visibleName } from '../../core/base/untrusted-text.ts'
import { formatUnits } from '../../core/money/money.ts'
import {
  type AssetLedger,
  otherName,
  peggedCurrency,
  signed,
  splitByAsset,
  titleOf,
  toUnits,
} from './ledgers.ts'
import type { AccountStatement, Movement } from './read-statement.ts'
import { xmlText } from './xml-text.ts'

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'
/** Digits of the finest asset, and of the format's amounts. */
const [DIGITS, MAX_DIGITS] = [9, 5]
const MAX = { id: 35, name: 140, text: 140, info: 500 }

const NOTHING: AssetLedger = { asset: 'USD', opening: '0', closing: '0', movements: [] }

export function writeCamt(statement: AccountStatement): string {
  const { accountId, period, to } = statement
  const id = accountId.replace(/^acct_/, '')
  const ledgers = splitByAsset(statement).flatMap((ledger) => {
    const currency = peggedCurrency(ledger.asset)
    return currency === null ? [] : [{ ledger, currency }]
  })
  // The format has one statement at least, also of an account that had nothing.
  const written = ledgers.length === 0 ? [{ ledger: NOTHING, currency: 'USD' }] : ledgers
  const statements = written.map(({ ledger, currency }) =>
    viewLedger(statement, ledger, { currency, account: `${id}-${ledger.asset}` }),
  )
  const xml = create({ version: '1.0', encoding: 'UTF-8' }).ele(NAMESPACE, 'Document')
  const root = xml.ele('BkToCstmrStmt')
  root.ele({ GrpHdr: { MsgId: shortId(`${id} ${period}`), CreDtTm: to } })
  for (const one of statements) root.ele({ Stmt: one })
  return xml.end({ prettyPrint: true })
}

function viewLedger(
  { period, from, to }: AccountStatement,
  { asset, opening, closing, movements }: AssetLedger,
  { currency, account }: { readonly currency: string; readonly account: string },
) {
  const amount = (units: bigint) => ({
    '@Ccy': currency,
    '#': formatUnits(units < 0n ? -units : units, MAX_DIGITS),
  })
  const balance = (code: string, units: bigint, at: string) => ({
    Tp: { CdOrPrtry: { Cd: code } },
    Amt: amount(units),
    CdtDbtInd: units < 0n ? 'DBIT' : 'CRDT',
    Dt: { DtTm: at },
  })
  let exact = toUnits(opening, DIGITS)
  let shown = round(exact)
  const entries = movements.map((movement) => {
    exact += toUnits(signed(movement), DIGITS)
    const change = round(exact) - shown
    shown = round(exact)
    return viewEntry(movement, amount(change))
  })
  return {
    Id: shortId(`${account} ${period}`),
    CreDtTm: to,
    FrToDt: { FrDtTm: from, ToDtTm: to },
    Acct: { Id: { Othr: { Id: account } }, Ccy: currency, Nm: asset },
    Bal: [
      balance('OPBD', round(toUnits(opening, DIGITS)), from),
      balance('CLBD', round(toUnits(closing, DIGITS)), to),
    ],
    ...(entries.length === 0 ? {} : { Ntry: entries }),
  }
}

/** Half up to the format's digits. No balance is below zero. */
function round(units: bigint): bigint {
  const step = 10n ** BigInt(DIGITS - MAX_DIGITS)
  return (units + step / 2n) / step
}

function viewEntry(movement: Movement, amount: object) {
  const { id, asset, at, direction, category, object, memo, task, agentId, refundOf, transactionHash } =
    movement
  const other = { Pty: { Nm: xmlText(titleOf(movement, MAX.name)) } }
  const payee = otherName(movement)
  const info = [
    `${object.kind} ${object.id}`,
    payee === null ? null : `payee ${payee}`,
    task === null ? null : `task ${task}`,
    agentId === null ? null : `agent ${agentId}`,
    refundOf === null ? null : `returns ${refundOf.kind} ${refundOf.id}`,
    transactionHash === null ? null : `transaction ${transactionHash}`,
  ]
  return {
    NtryRef: shortId(`${id} ${asset}`),
    Amt: amount,
    CdtDbtInd: direction === 'in' ? 'CRDT' : 'DBIT',
    Sts: { Cd: 'BOOK' },
    BookgDt: { DtTm: at },
    ValDt: { DtTm: at },
    AcctSvcrRef: shortId(id),
    BkTxCd: { Prtry: { Cd: category.slice(0, MAX.id), Issr: 'Bursar' } },
    NtryDtls: {
      TxDtls: {
        Refs: { EndToEndId: shortId(object.id) },
        RltdPties: direction === 'in' ? { Dbtr: other } : { Cdtr: other },
        ...(memo === null ? {} : { RmtInf: { Ustrd: xmlText(visibleName(memo, MAX.text)) } }),
      },
    },
    AddtlNtryInf: xmlText(visibleName(info.filter((one) => one !== null).join(', '), MAX.info)),
  }
}

/** A text where it is short enough, otherwise its hash: references have at most 35 characters. */
function shortId(text: string): string {
  const known = xmlText(text)
  return known.length <= MAX.id ? known : createHash('sha256').update(text).digest('hex').slice(0, MAX.id)
}
