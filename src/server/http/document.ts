/** Renders responses in other media types than JSON: lists as text/csv for spreadsheets, and the documents of a tool. @see https://www.rfc-editor.org/rfc/rfc4180 */
import { accepts } from 'hono/accepts'
import type { CatalogueEntry } from '../../kernel/catalogue.ts'
import { type HttpContext, readRawTarget } from './request.ts'

/** Prefixes that spreadsheets evaluate as a formula, full-width ones included. @see https://owasp.org/www-community/attacks/CSV_Injection */
const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/

/** Returns the response in the media type that the client prefers; undefined for JSON, and where the tool has no other. */
export async function documentAnswer(
  c: HttpContext,
  { tool, output }: Pick<CatalogueEntry, 'tool' | 'output'>,
  body: Record<string, unknown>,
): Promise<Response | undefined> {
  const { csv, documents = {} } = tool
  const others = [...(csv === undefined ? [] : ['text/csv']), ...Object.keys(documents)]
  if (others.length === 0) return undefined
  c.header('Vary', 'Accept')
  const type = accepts(c, {
    header: 'Accept',
    supports: ['application/json', ...others],
    default: 'application/json',
  })
  if (type === 'text/csv' && csv !== undefined) {
    const { nextCursor } = body
    if (typeof nextCursor === 'string') c.header('Link', `<${pageTarget(c, nextCursor)}>; rel="next"`)
    return c.body(formatCsv(listColumns(output, csv), body[csv]), 200, {
      'Content-Type': 'text/csv; charset=utf-8; header=present',
    })
  }
  const document = documents[type]
  if (document === undefined) return undefined
  const written = await document.write(body)
  const isText = typeof written === 'string'
  return c.body(isText ? written : new Uint8Array(written), 200, {
    'Content-Type': isText ? `${type}; charset=utf-8` : type,
    'Content-Disposition': `attachment; filename="${tool.name.replaceAll('.', '-')}.${document.extension}"`,
  })
}

/** Formats rows as CSV with a header line. Cells that look like formulas are neutralized. */
export function formatCsv(columns: readonly string[], rows: unknown): string {
  const lines = [columns, ...toItems(rows).map((row) => columns.map((name) => valueAt(row, name)))]
  return lines.map((line) => `${line.map(formatCell).join(',')}\r\n`).join('')
}

function formatCell(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value)
  const inert = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}

/** Column names: the members of a row in the tool's output schema; members of an object, nullable or not, as `object.id`. */
function listColumns(output: unknown, list: string): string[] {
  const rows = readMember(readMember(readMember(output, 'properties'), list), 'items')
  return Object.entries(Object(readMember(rows, 'properties'))).flatMap(([name, schema]) => {
    const shapes = [schema, ...toItems(readMember(schema, 'anyOf'))]
    const members = shapes.flatMap((shape) => Object.keys(Object(readMember(shape, 'properties'))))
    return members.length === 0 ? [name] : members.map((member) => `${name}.${member}`)
  })
}

function valueAt(row: unknown, column: string): unknown {
  return column.split('.').reduce(readMember, row)
}

function pageTarget(c: HttpContext, cursor: string): string {
  const target = new URL(readRawTarget(c), 'http://page')
  target.searchParams.set('cursor', cursor)
  return target.pathname + target.search
}

function toItems(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function readMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined
}
