/** A statement to print: balances with what came and left, then every movement. The fonts are those that every PDF reader has. */
import { once } from 'node:events'
import PDFDocument from 'pdfkit'
import { timers } from '../../core/base/timers.ts'
import { visibleText } from '../../core/base/untrusted-text.ts'
import { formatUnits } from '../../core/money/money.ts'
import { type AssetLedger, otherName, splitByAsset, titleOf, toUnits } from './ledgers.ts'
import type { AccountStatement, Movement, Payment } from './read-statement.ts'

/** Points. */
const PAGE = { size: 'A4', left: 48, right: 547, top: 48, bottom: 780 } as const
const ROW = { height: 30, head: 18, balance: 20 }
/** Where each column begins, and how broad it is. */
const MOVED = { date: [48, 62], payee: [110, 232], amount: [342, 125], usd: [467, 80] } as const
const BALANCES = {
  asset: [48, 90],
  opening: [138, 100],
  came: [238, 100],
  left: [338, 100],
  closing: [438, 109],
} as const
const FACTS = { label: [48, 100], value: [150, 397] } as const
const INK = { text: '#17181b', soft: '#4d5058', faint: '#63666e', line: '#e6e6e1', good: '#0b6e43' }
/** Rows between two pauses in which other calls are answered. */
const BETWEEN_PAUSES = 200
const PAGES_BETWEEN_PAUSES = 20
/** Digits of the finest asset. */
const DIGITS = 9

type Doc = InstanceType<typeof PDFDocument>
type Column = readonly [x: number, width: number]

export async function writePdf(statement: AccountStatement): Promise<Uint8Array> {
  const title = `Statement ${namePeriod(statement)}`
  const doc = new PDFDocument({
    size: PAGE.size,
    margin: 0,
    bufferPages: true,
    info: { Title: title, Author: 'Bursar', CreationDate: new Date(statement.to) },
  })
  const parts: Buffer[] = []
  doc.on('data', (part: Buffer) => parts.push(part))
  const ended = once(doc, 'end')
  let y = writeHead(doc, statement)
  y = writeBalances(doc, splitByAsset(statement), y)
  await writeMovements(doc, statement.movements, y)
  await writePayments(doc, statement)
  const { count } = doc.bufferedPageRange()
  for (let page = 0; page < count; page += 1) {
    doc.switchToPage(page)
    line(doc, PAGE.bottom + 10)
    cell(doc, statement.accountId, [PAGE.left, 300], PAGE.bottom + 18, { size: 8, color: INK.faint })
    const number = `Page ${page + 1} of ${count}`
    cell(doc, number, [PAGE.right - 150, 150], PAGE.bottom + 18, {
      size: 8,
      color: INK.faint,
      align: 'right',
    })
  }
  doc.end()
  await ended
  return Buffer.concat(parts)
}

function writeHead(doc: Doc, statement: AccountStatement): number {
  doc.roundedRect(PAGE.left, PAGE.top, 22, 22, 5).fill(INK.text)
  cell(doc, 'B', [PAGE.left, 22], PAGE.top + 6, { size: 13, color: '#ffffff', isBold: true, align: 'center' })
  cell(doc, 'Bursar', [PAGE.left + 30, 200], PAGE.top + 6, { size: 13, isBold: true })
  cell(doc, 'Statement', [PAGE.right - 260, 260], PAGE.top, { size: 9, color: INK.faint, align: 'right' })
  cell(doc, namePeriod(statement), [PAGE.right - 260, 260], PAGE.top + 12, {
    ...{ size: 13, isBold: true, align: 'right' },
  })
  cell(doc, 'Account', [PAGE.left, 200], PAGE.top + 44, { size: 8, color: INK.faint })
  cell(doc, statement.accountId, [PAGE.left, 300], PAGE.top + 55, { size: 9 })
  const last = new Date(new Date(statement.to).getTime() - 1)
  const days = `${nameDay(new Date(statement.from))} to ${nameDay(last)}, UTC`
  cell(doc, 'Period', [PAGE.right - 260, 260], PAGE.top + 44, { size: 8, color: INK.faint, align: 'right' })
  cell(doc, days, [PAGE.right - 260, 260], PAGE.top + 55, { size: 9, align: 'right' })
  return PAGE.top + 88
}

function writeBalances(doc: Doc, ledgers: readonly AssetLedger[], top: number): number {
  let y = heading(doc, 'Balances', top)
  if (ledgers.length === 0) return quiet(doc, 'The account had nothing and moved nothing.', y)
  const heads = { asset: 'Asset', opening: 'Opening', came: 'In', left: 'Out', closing: 'Closing' } as const
  y = tableHead(doc, BALANCES, heads, y)
  for (const { asset, opening, closing, movements } of ledgers) {
    y = onPage(doc, y, ROW.balance)
    const sum = (direction: Movement['direction']) =>
      formatUnits(
        movements.reduce(
          (total, one) => total + (one.direction === direction ? toUnits(one.amount, DIGITS) : 0n),
          0n,
        ),
        DIGITS,
      )
    cell(doc, asset, BALANCES.asset, y, { size: 9, isBold: true })
    cell(doc, grouped(opening), BALANCES.opening, y, { size: 9, align: 'right', color: INK.soft })
    const [came, left] = [sum('in'), sum('out')]
    cell(doc, grouped(came), BALANCES.came, y, {
      ...{ size: 9, align: 'right', color: came === '0' ? INK.soft : INK.good },
    })
    cell(doc, grouped(left), BALANCES.left, y, {
      ...{ size: 9, align: 'right', color: left === '0' ? INK.soft : INK.text },
    })
    cell(doc, grouped(closing), BALANCES.closing, y, { size: 9, align: 'right', isBold: true })
    line(doc, y + 14)
    y += ROW.balance
  }
  return y + 18
}

async function writeMovements(doc: Doc, movements: readonly Movement[], top: number): Promise<void> {
  let y = heading(doc, 'Movements', onPage(doc, top, 90))
  if (movements.length === 0) {
    quiet(doc, 'Nothing came in or left.', y)
    return
  }
  const heads = { date: 'Date', payee: 'Payee or payer', amount: 'Amount', usd: 'USD then' } as const
  y = tableHead(doc, MOVED, heads, y)
  for (const [position, movement] of movements.entries()) {
    if (position % BETWEEN_PAUSES === BETWEEN_PAUSES - 1) await timers.sleep(0)
    const next = onPage(doc, y, ROW.height)
    y = next < y ? tableHead(doc, MOVED, heads, next) : next
    writeMovement(doc, movement, y)
    y += ROW.height
  }
}

function writeMovement(doc: Doc, movement: Movement, y: number): void {
  const { at, asset, category, task, memo, refundOf, usd, direction } = movement
  const day = new Date(at)
  cell(doc, nameDay(day), MOVED.date, y, { size: 9 })
  cell(doc, at.slice(11, 16), MOVED.date, y + 11, { size: 7.5, color: INK.faint })
  const [title, way] = [titleOf(movement, 120), category.replaceAll('_', ' ')]
  cell(doc, title, MOVED.payee, y, { size: 9, isBold: true })
  const about = [
    title === way ? null : way,
    otherName(movement),
    refundOf === null ? null : 'returns an earlier payment',
    task,
    memo,
  ]
  const words = about.filter((one) => one !== null).join(' · ')
  cell(doc, words, MOVED.payee, y + 11, { size: 7.5, color: INK.faint })
  const sign = direction === 'in' ? '+' : '\u2013'
  cell(doc, `${sign}${grouped(movement.amount)} ${asset}`, MOVED.amount, y, {
    ...{ size: 9, align: 'right', isBold: true, color: direction === 'in' ? INK.good : INK.text },
  })
  if (movement.fee !== '0')
    cell(doc, `fee ${grouped(movement.fee)}`, MOVED.amount, y + 11, {
      size: 7.5,
      align: 'right',
      color: INK.faint,
    })
  const worth = usd === null ? 'unknown' : cents(usd)
  cell(doc, worth, MOVED.usd, y, { size: 9, align: 'right', color: usd === null ? INK.faint : INK.soft })
  line(doc, y + 23)
}

/** A page for each payment that was asked for. */
async function writePayments(doc: Doc, { movements, payments = [] }: AccountStatement): Promise<void> {
  const moved = new Map(movements.map((movement) => [`${movement.id} ${movement.asset}`, movement]))
  for (const [position, payment] of payments.entries()) {
    if (position % PAGES_BETWEEN_PAUSES === PAGES_BETWEEN_PAUSES - 1) await timers.sleep(0)
    const movement = moved.get(`${payment.id} ${payment.asset}`)
    if (movement === undefined) continue
    doc.addPage()
    writePayment(doc, movement, payment)
  }
}

function writePayment(doc: Doc, movement: Movement, { agent, approvalId, agreed, decision }: Payment): void {
  const { at, amount, asset, usd, fee, memo, task, category, counterparty, contact, object } = movement
  const day = new Date(at)
  cell(doc, 'Payment', [PAGE.left, 200], PAGE.top, { size: 9, color: INK.faint })
  cell(doc, titleOf(movement, 120), [PAGE.left, 330], PAGE.top + 14, { size: 15, isBold: true })
  cell(doc, `\u2013${grouped(amount)} ${asset}`, [PAGE.right - 165, 165], PAGE.top + 14, {
    ...{ size: 15, isBold: true, align: 'right' },
  })
  const worth = usd === null ? 'Worth in USD unknown' : `${cents(usd)} USD then`
  cell(doc, worth, [PAGE.right - 165, 165], PAGE.top + 34, { size: 9, align: 'right', color: INK.soft })
  cell(doc, `${nameDay(day)}, ${at.slice(11, 16)} UTC`, [PAGE.left, 300], PAGE.top + 34, {
    ...{ size: 9, color: INK.soft },
  })
  let y = PAGE.top + 74
  y = facts(doc, y, 'Who', [
    ['Paid by', movement.agentId === null ? 'A person of the account' : `Agent ${agent ?? ''}`],
    ['Key', movement.agentId],
    ['Approval', approvalId ?? 'Nobody was asked'],
    ...agreed.map((person) => ['Agreed by', person] as const),
  ])
  y = facts(doc, y, 'What for', [
    ['Payee', contact ?? counterparty],
    ['Paid at', contact === null ? null : counterparty],
    ['Purpose', memo],
    ['Task', task],
    ['Way of paying', category.replaceAll('_', ' ')],
    ['Fee in it', fee === '0' ? null : `${grouped(fee)} ${asset}`],
  ])
  y = facts(doc, y, 'Evidence', [
    ['Booking', movement.id],
    [object.kind.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase()), object.id],
    ['On the chain', movement.transactionHash],
  ])
  facts(doc, y, 'Decision', [
    ['Decision', movement.decisionId ?? 'None was needed'],
    ['Operation', decision?.operation ?? null],
    [
      'Verdict',
      decision === null ? null : `${decision.verdict}, ${decision.at.replace('T', ' ').slice(0, 19)} UTC`,
    ],
    ['Policy', decision?.policyVersion == null ? null : `Version ${decision.policyVersion}`],
    ['Its hash', decision?.policyHash ?? null],
    [
      'Receipt',
      decision === null ? null : decision.verified ? 'Signed by this gateway, verified' : 'Not verified',
    ],
    ['In the chain', decision?.sequence == null ? null : `Number ${decision.sequence}`],
    ['Its hash', decision?.hash ?? null],
  ])
}

/** @returns where what follows begins. */
function facts(
  doc: Doc,
  top: number,
  title: string,
  rows: readonly (readonly [label: string, value: string | null])[],
): number {
  let y = heading(doc, title, top)
  line(doc, y - 4)
  for (const [label, value] of rows) {
    if (value === null) continue
    cell(doc, label, FACTS.label, y + 2, { size: 9, color: INK.faint })
    cell(doc, value, FACTS.value, y + 2, { size: 9 })
    y += 16
  }
  return y + 20
}

function heading(doc: Doc, text: string, y: number): number {
  cell(doc, text, [PAGE.left, 300], y, { size: 11, isBold: true })
  return y + 20
}

function quiet(doc: Doc, text: string, y: number): number {
  cell(doc, text, [PAGE.left, 400], y, { size: 9, color: INK.soft })
  return y + 30
}

/** Words over numbers stand at their end, as the numbers do. */
function tableHead<Name extends string>(
  doc: Doc,
  columns: Readonly<Record<Name, Column>>,
  heads: Readonly<Record<Name, string>>,
  y: number,
): number {
  const names = Object.keys(columns) as Name[]
  for (const name of names) {
    const isText = name === 'asset' || name === 'date' || name === 'payee'
    cell(doc, heads[name], columns[name], y, { size: 8, color: INK.faint, align: isText ? 'left' : 'right' })
  }
  line(doc, y + 12)
  return y + ROW.head
}

/** @returns where it can be written: here, or at the top of a new page. */
function onPage(doc: Doc, y: number, height: number): number {
  if (y + height <= PAGE.bottom) return y
  doc.addPage()
  return PAGE.top
}

function line(doc: Doc, y: number): void {
  doc.moveTo(PAGE.left, y).lineTo(PAGE.right, y).lineWidth(0.5).stroke(INK.line)
}

/** Writes text in a column, on one line that is cut where it is too long. */
function cell(
  doc: Doc,
  text: string,
  [x, width]: Column,
  y: number,
  {
    size,
    color = INK.text,
    align = 'left',
    isBold = false,
  }: {
    readonly size: number
    readonly color?: string
    readonly align?: 'left' | 'right' | 'center'
    readonly isBold?: boolean
  },
): void {
  doc
    .font(isBold ? 'Helvetica-Bold' : 'Helvetica')
    .fontSize(size)
    .fillColor(color)
    .text(toWinAnsi(visibleText(text)), x, y, {
      width,
      height: size + 1,
      align,
      ellipsis: true,
      lineBreak: true,
    })
}

/** `1,234.5` */
function grouped(decimal: string): string {
  const [whole = '0', fraction] = decimal.split('.')
  const digits = whole.replaceAll(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? digits : `${digits}.${fraction}`
}

/** Dollars and cents, rounded half up. */
function cents(usd: string): string {
  const units = (toUnits(usd, DIGITS) + 5_000_000n) / 10_000_000n
  return grouped(`${units / 100n}.${(units % 100n).toString().padStart(2, '0')}`)
}

const months = 'January February March April May June July August September October November December'.split(
  ' ',
)

function namePeriod({ period, from }: AccountStatement): string {
  if (period.length !== '2026-11'.length) return period.replace('..', ' to ')
  const start = new Date(from)
  return `${months[start.getUTCMonth()]} ${start.getUTCFullYear()}`
}

function nameDay(day: Date): string {
  return `${day.getUTCDate()} ${months[day.getUTCMonth()]?.slice(0, 3)} ${day.getUTCFullYear()}`
}

/** Characters of Windows-1252 beyond Latin 1. */
const BEYOND = '€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ'

/** Text in the encoding of the fonts: other letters without their accents where that helps, otherwise a question mark. */
function toWinAnsi(text: string): string {
  return [...text]
    .map((letter) => {
      if (isWinAnsi(letter)) return letter
      const [base = '?'] = [...letter.normalize('NFKD')]
      return isWinAnsi(base) ? base : '?'
    })
    .join('')
}

function isWinAnsi(letter: string): boolean {
  return /^[\u0020-\u007E\u00A0-\u00FF]$/.test(letter) || BEYOND.includes(letter)
}
