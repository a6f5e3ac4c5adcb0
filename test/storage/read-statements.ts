/** The raw statements of the program, read from its source: most are private to their file. */
import { readFileSync } from 'node:fs'
import type { Statement } from '../../src/storage/database.ts'
import { filesBelow } from '../files.ts'

const LITERAL = '`[^`]*`|\'(?:[^\'\\\\]|\\\\.)*\'|"[^"]*"'

/** A statement's two members, with comments between them. The text is a literal or a constant's name. */
const statement = /name: '(\w+)',\s*(?:\/\/.*\n\s*)*text\b/g
const textMember = new RegExp(`: (${LITERAL}|\\w+)(?=[,\\s])`, 'y')

/** Every statement with its file. @throws Error if a part of its text cannot be resolved. */
export function readStatements(): readonly (Statement & { readonly file: string })[] {
  const sources = new Map(
    ['src', 'tools', 'mcp'].flatMap(filesBelow).map((file) => [file, readFileSync(file, 'utf8')] as const),
  )
  /** A constant's value in this file, or the only one elsewhere. */
  const constant = (name: string, file: string): string => {
    const declaration = new RegExp(`const ${name}(?:: string)? = (${LITERAL})`)
    const own = declaration.exec(sources.get(file) ?? '')?.[1]
    if (own !== undefined) return resolveText(own, file)
    const found = [...sources].flatMap(([other, source]) => {
      const literal = declaration.exec(source)?.[1]
      return literal === undefined ? [] : [resolveText(literal, other)]
    })
    if (found[0] === undefined || found.length > 1)
      throw new Error(`${file}: ${name} is declared ${found.length} times`)
    return found[0]
  }
  const resolveText = (literal: string, file: string): string =>
    /^\w/.test(literal)
      ? constant(literal, file)
      : literal.slice(1, -1).replace(/\$\{(\w+)\}/g, (_whole, name: string) => constant(name, file))
  return [...sources].flatMap(([file, source]) =>
    [...source.matchAll(statement)].map((match) => {
      const [whole, name = ''] = match
      textMember.lastIndex = match.index + whole.length
      const literal = textMember.exec(source)?.[1]
      if (literal === undefined)
        throw new Error(`${file}: the text of ${name} is neither a literal nor a constant`)
      return { file, name, text: resolveText(literal, file) }
    }),
  )
}
