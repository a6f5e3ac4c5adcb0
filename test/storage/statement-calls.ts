/**
 * The calls of raw statements, read from the source with the types that the compiler gives them: the row that each call
 * expects and the parameters that it passes. The compiler's API is the one of the pinned `typescript`, which calls it
 * unstable.
 */
import type { CallExpression, Expression, Node } from 'typescript/unstable/ast'
import {
  isArrayLiteralExpression,
  isCallExpression,
  isIdentifier,
  isObjectLiteralExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isSpreadElement,
  isStringLiteral,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is'
import { API, type Checker, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync'
import { filesBelow } from '../files.ts'

/** Run-time type of a value, without null: `string`, `bigint`, `Date`, `string[]`, `json` … */
export type Kinds = ReadonlySet<string>

/** One call. */
export interface StatementCall {
  /** `src/books/ledger/post.ts:53`. */
  readonly place: string
  /** The statement's name; undefined where the call does not show it. */
  readonly statement: string | undefined
  /** The columns that the row type declares, or one type for all of them; undefined where rows are not read. */
  readonly row: ReadonlyMap<string, Kinds> | Kinds | undefined
  /** The parameters in their order; undefined where the call does not show how many there are. */
  readonly parameters: readonly Kinds[] | undefined
}

const PORT = '/src/storage/database.ts'

/** Every call of `Connection.call`, `Connection.gather` and `callForRow` outside the port. */
export function readStatementCalls(): readonly StatementCall[] {
  const api = new API({ cwd: process.cwd() })
  try {
    const [project] = api.updateSnapshot({ openProject: 'tsconfig.json' }).getProjects()
    if (project === undefined) throw new Error('tsconfig.json opens no project')
    const { checker, program } = project
    return ['src', 'tools', 'mcp'].flatMap(filesBelow).flatMap((file) => {
      const source = program.getSourceFile(file)
      if (source === undefined || `/${file}` === PORT) return []
      const found: StatementCall[] = []
      const visit = (node: Node): void => {
        if (isCallExpression(node) && isStatementCall(node, checker)) {
          const line = source.text.slice(0, node.getStart(source)).split('\n').length
          found.push({ place: `${file}:${line}`, ...readCall(node, checker) })
        }
        node.forEachChild(visit)
      }
      visit(source)
      return found
    })
  } finally {
    api.close()
  }
}

function isStatementCall(node: CallExpression, checker: Checker): boolean {
  const { expression } = node
  const name = isPropertyAccessExpression(expression)
    ? expression.name.text
    : isIdentifier(expression)
      ? expression.text
      : ''
  if (name !== 'call' && name !== 'gather' && name !== 'callForRow') return false
  return checker.getResolvedSignature(node)?.declaration?.path.endsWith(PORT) === true
}

function readCall(node: CallExpression, checker: Checker): Omit<StatementCall, 'place'> {
  const isForRow = isIdentifier(node.expression)
  const isGathered = isPropertyAccessExpression(node.expression) && node.expression.name.text === 'gather'
  const [statement, parameters] = isForRow ? node.arguments.slice(1) : node.arguments
  const promise = checker.getTypeAtLocation(node)
  const answered = findArgument(promise, checker)
  const row = isForRow || isGathered ? answered : findArgument(answered, checker)
  if (row === undefined) throw new Error(`${node.getText()}: its row type cannot be read`)
  return {
    statement: statement && findName(statement, checker),
    row: readRow(row, checker),
    parameters: isGathered ? [new Set(['string'])] : parameters && readParameters(parameters, checker),
  }
}

/** The only argument of a generic type: of a promise or an array. */
function findArgument(type: Type | undefined, checker: Checker): Type | undefined {
  if (type?.isTypeReference() !== true) return undefined
  return checker.getTypeArguments(type)[0]
}

/** The expression itself, or what a constant was declared with. */
function findInitializer(expression: Expression, checker: Checker): Expression {
  if (!isIdentifier(expression)) return expression
  const symbol = checker.getResolvedSymbol(expression)
  const origin = symbol && (symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)
  const declaration = origin?.valueDeclaration?.resolve()
  return declaration !== undefined &&
    isVariableDeclaration(declaration) &&
    declaration.initializer !== undefined
    ? declaration.initializer
    : expression
}

function findName(expression: Expression, checker: Checker): string | undefined {
  const literal = findInitializer(expression, checker)
  if (!isObjectLiteralExpression(literal)) return undefined
  for (const property of literal.properties)
    if (
      isPropertyAssignment(property) &&
      property.name.getText() === 'name' &&
      isStringLiteral(property.initializer)
    )
      return property.initializer.text
  return undefined
}

function readRow(row: Type, checker: Checker): StatementCall['row'] {
  if (row.flags & TypeFlags.Unknown) return undefined
  const [index] = checker.getIndexInfosOfType(row)
  if (index !== undefined) return listKinds(index.valueType, checker)
  const columns = new Map<string, Set<string>>()
  for (const variant of row.isUnionType() ? row.getTypes() : [row])
    for (const property of checker.getPropertiesOfType(variant)) {
      const kinds = columns.get(property.name) ?? new Set()
      const type = checker.getTypeOfSymbol(property)
      for (const kind of type === undefined ? ['?'] : listKinds(type, checker)) kinds.add(kind)
      columns.set(property.name, kinds)
    }
  return columns
}

function readParameters(expression: Expression, checker: Checker): StatementCall['parameters'] {
  const literal = findInitializer(expression, checker)
  if (!isArrayLiteralExpression(literal)) return listTuple(checker.getTypeAtLocation(literal), checker)
  const parts = literal.elements.map((element) => {
    if (isSpreadElement(element)) return listTuple(checker.getTypeAtLocation(element.expression), checker)
    const type = checker.getTypeAtLocation(element)
    return type && [listKinds(type, checker)]
  })
  return parts.includes(undefined) ? undefined : parts.flatMap((part) => part ?? [])
}

function listTuple(type: Type | undefined, checker: Checker): readonly Kinds[] | undefined {
  if (type === undefined || !checker.isTupleType(type) || !type.isTypeReference()) return undefined
  return checker.getTypeArguments(type).map((element) => listKinds(element, checker))
}

const primitives = [
  [TypeFlags.StringLike, 'string'],
  [TypeFlags.NumberLike, 'number'],
  [TypeFlags.BigIntLike, 'bigint'],
  [TypeFlags.BooleanLike, 'boolean'],
  [TypeFlags.Unknown, 'json'],
  [TypeFlags.Any, 'any'],
] as const

function listKinds(type: Type, checker: Checker): Kinds {
  if (type.isUnionType())
    return new Set(type.getTypes().flatMap((variant) => [...listKinds(variant, checker)]))
  if (type.flags & (TypeFlags.Null | TypeFlags.Undefined)) return new Set()
  const primitive = primitives.find(([flags]) => type.flags & flags)
  if (primitive !== undefined) return new Set([primitive[1]])
  const name = type.getSymbol()?.name
  if (name === 'Date' || name === 'Uint8Array') return new Set([name])
  const isArray = type.isTypeReference() && (checker.isArrayType(type) || checker.isTupleType(type))
  return new Set([isArray && checker.getTypeArguments(type).every(isText) ? 'string[]' : 'json'])
}

function isText(type: Type): boolean {
  return type.isUnionType() ? type.getTypes().every(isText) : (type.flags & TypeFlags.StringLike) !== 0
}
