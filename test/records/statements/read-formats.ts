/**
 * Readers of statements in every format, which know nothing of what writes them: each finds an asset's balances and what moved, in
 * billionths.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'

/** @property units positive for what came. */
export interface Entry {
  readonly asset: string
  readonly units: bigint
}

/** @property opening null where the format has none. @property entries in the document's order. */
export interface Book {
  readonly opening: ReadonlyMap<string, bigint> | null
  readonly closing: ReadonlyMap<string, bigint> | null
  readonly entries: readonly Entry[]
}

const text = z.string()

/** A decimal with or without a sign. */
export function toUnits(decimal: string): bigint {
  const [, sign, whole = '', fraction = ''] = /^([+-]?)(\d+)(?:\.(\d{1,9}))?$/.exec(decimal) ?? []
  if (whole === '') throw new Error(`${JSON.stringify(decimal)} is no amount`)
  const units = BigInt(whole + fraction.padEnd(9, '0'))
  return sign === '-' ? -units : units
}

export function readJson(body: string): Book {
  const { balances, movements } = z
    .looseObject({
      balances: z.array(z.looseObject({ asset: text, opening: text, closing: text })),
      movements: z.array(z.looseObject({ direction: text, amount: text, asset: text })),
    })
    .parse(JSON.parse(body))
  const pick = (name: 'opening' | 'closing') =>
    new Map(balances.map((balance) => [balance.asset, toUnits(balance[name])]))
  return {
    opening: pick('opening'),
    closing: pick('closing'),
    entries: movements.map(({ asset, direction, amount }) => ({
      asset,
      units: direction === 'in' ? toUnits(amount) : -toUnits(amount),
    })),
  }
}

/** RFC 4180. It has movements only. */
export function readCsv(body: string): Book {
  const [head = [], ...rows] = parseCsv(body)
  const column = (name: string) => head.indexOf(name)
  const [direction, amount, asset] = [column('direction'), column('amount'), column('asset')]
  return {
    opening: null,
    closing: null,
    entries: rows.map((row) => ({
      asset: row[asset] ?? '',
      units: toUnits(`${row[direction] === 'in' ? '' : '-'}${row[amount]}`),
    })),
  }
}

function parseCsv(body: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quoted, bare, end] of body.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    if (quoted === undefined && bare === '' && end === '' && row.length === 0) break
    row.push(quoted === undefined ? (bare ?? '') : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    rows.push(row)
    row = []
  }
  return rows
}

const valuesOf = (body: string, tag: string) =>
  [...body.matchAll(new RegExp(`<${tag}(?: [^>]*)?>([^<]*)<`, 'g'))].map((match) => match[1]?.trim() ?? '')
const blocksOf = (body: string, tag: string) =>
  [...body.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map((match) => match[1] ?? '')

/** It has no shares and no opening balance. */
export function readOfx(body: string): Book {
  const accounts = blocksOf(body, 'STMTTRNRS').map((block) => ({
    asset: valuesOf(block, 'ACCTID')[0]?.split('-')[0] ?? '',
    amounts: valuesOf(block, 'TRNAMT').map(toUnits),
    closing: toUnits(valuesOf(block, 'BALAMT')[0] ?? ''),
  }))
  return {
    opening: null,
    closing: new Map(accounts.map(({ asset, closing }) => [asset, closing])),
    entries: accounts.flatMap(({ asset, amounts }) => amounts.map((units) => ({ asset, units }))),
  }
}

/** It has no shares. */
export function readCamt(body: string): Book {
  const signedIn = (block: string) =>
    toUnits(`${valuesOf(block, 'CdtDbtInd')[0] === 'DBIT' ? '-' : ''}${valuesOf(block, 'Amt')[0]}`)
  const accounts = blocksOf(body, 'Stmt').map((block) => {
    const balances = new Map(
      blocksOf(block, 'Bal').map((balance) => [valuesOf(balance, 'Cd')[0], signedIn(balance)]),
    )
    return {
      asset: valuesOf(blocksOf(block, 'Acct')[0] ?? '', 'Nm')[0] ?? '',
      opening: balances.get('OPBD') ?? 0n,
      closing: balances.get('CLBD') ?? 0n,
      amounts: blocksOf(block, 'Ntry').map(signedIn),
    }
  })
  return {
    opening: new Map(accounts.map(({ asset, opening }) => [asset, opening])),
    closing: new Map(accounts.map(({ asset, closing }) => [asset, closing])),
    entries: accounts.flatMap(({ asset, amounts }) => amounts.map((units) => ({ asset, units }))),
  }
}

/** A journal as hledger itself reads it, checked in its strict mode. */
export function openJournal(body: string) {
  const file = join(mkdtempSync(join(tmpdir(), 'statement-')), 'statement.journal')
  writeFileSync(file, body)
  const hledger = (...args: string[]) => execFileSync('hledger', [...args, '-f', file]).toString()
  /** `60.000003 USDC, -3.00 USD` by commodity. */
  const parseAmounts = (amounts: string): Entry[] =>
    [...amounts.matchAll(/(-?[\d.]+) "?([A-Z0-9.]+)"?/g)].map(([, amount = '', asset = '']) => ({
      asset,
      units: toUnits(amount),
    }))
  const balanceOf = (account: string): ReadonlyMap<string, bigint> => {
    const [, ...rows] = parseCsv(hledger('balance', '-N', '-O', 'csv', '--layout=wide', account))
    return new Map(
      rows.flatMap(([, amounts = '']) => parseAmounts(amounts)).map(({ asset, units }) => [asset, units]),
    )
  }
  return {
    check: () => hledger('check', '--strict'),
    /** What an account has by commodity; an account that has nothing is absent. */
    balanceOf,
    accounts: () => hledger('accounts', '--used').split('\n').filter(Boolean),
    read: (): Book => {
      const [head = [], ...rows] = parseCsv(hledger('register', '-O', 'csv', '^assets:bursar:'))
      const cell = (row: readonly string[], name: string) => row[head.indexOf(name)] ?? ''
      const named = (name: string) =>
        rows
          .filter((row) => cell(row, 'description') === name)
          .flatMap((row) => parseAmounts(cell(row, 'amount')))
      const isBalance = (row: readonly string[]) =>
        /^(opening|closing) balances$/.test(cell(row, 'description'))
      return {
        opening: new Map(named('opening balances').map(({ asset, units }) => [asset, units])),
        closing: balanceOf('^assets:bursar:'),
        entries: rows.filter((row) => !isBalance(row)).flatMap((row) => parseAmounts(cell(row, 'amount'))),
      }
    },
  }
}

/** The text of a PDF as pdftotext lays it out. */
export function readPdf(bytes: Uint8Array): Book & { readonly pages: readonly string[] } {
  const file = join(mkdtempSync(join(tmpdir(), 'statement-')), 'statement.pdf')
  writeFileSync(file, bytes)
  const pages = execFileSync('pdftotext', ['-layout', file, '-']).toString().split('\f').slice(0, -1)
  const [balances = '', ...movements] = pages.join('\n').split(/^Movements$/m)
  const plain = (grouped: string) => grouped.replaceAll(',', '')
  const rows = [...balances.matchAll(/^([A-Z0-9.]+) +([\d.,]+) +([\d.,]+) +([\d.,]+) +([\d.,]+)$/gm)].map(
    ([, asset = '', ...amounts]) => ({ asset, amounts: amounts.map((amount) => toUnits(plain(amount))) }),
  )
  for (const { asset, amounts } of rows) {
    const [opening = 0n, came = 0n, left = 0n, closing = 0n] = amounts
    if (opening + came - left !== closing) throw new Error(`the row of ${asset} does not add up`)
  }
  const at = (index: number) => new Map(rows.map(({ asset, amounts }) => [asset, amounts[index] ?? 0n]))
  return {
    pages,
    opening: at(0),
    closing: at(3),
    entries: [
      ...movements.join('\n').matchAll(/ ([+–])([\d,]+(?:\.\d+)?) ([A-Z0-9.]+) +(?:[\d,]+\.\d\d|unknown)$/gm),
    ].map(([, sign, amount = '', asset = '']) => ({
      asset,
      units: toUnits(`${sign === '–' ? '-' : ''}${plain(amount)}`),
    })),
  }
}
