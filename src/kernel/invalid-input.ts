/** Tells what is wrong with an input in words, naming members and bounds, and never the values. */
import { z } from 'zod'
import { nearestTo } from '../core/base/nearest.ts'
import { Failure } from '../core/failures/failure.ts'

/** Unknown members that are named, and how much of each name: callers send what they like. */
const MAX_UNKNOWN = 8
const MAX_NAME = 64

type Issue = z.core.$ZodIssue

interface IssueText {
  readonly path: string
  readonly message: string
}

/** @param raw input that the schema refused. @returns `invalid_request` with path and message of each issue. */
export function invalidInput(
  error: z.ZodError,
  { schema, raw }: { schema: z.ZodType; raw: unknown },
): Failure {
  const issues = error.issues.flatMap((issue) => describeIssue(issue, [], { schema, raw }))
  const [first] = issues
  const others = issues.length - 1
  const more = others === 0 ? '' : `; ${others} more ${others === 1 ? 'issue' : 'issues'}`
  const detail = first === undefined ? 'The input is not valid.' : formatIssue(first)
  return new Failure('invalid_request', `${detail}${more}`, {
    issues,
    hint: findHint(error) ?? 'Correct the members named in "issues" and send the request again.',
  })
}

function formatIssue({ path, message }: IssueText): string {
  if (path === '') return message
  return message.startsWith('is ') ? `${path} ${message}` : `${path}: ${message}`
}

function describeIssue(
  issue: Issue,
  above: readonly PropertyKey[],
  given: { schema: z.ZodType; raw: unknown },
): IssueText[] {
  const at = [...above, ...issue.path]
  const path = at.map(String).join('.')
  if (issue.code === 'unrecognized_keys')
    return issue.keys.slice(0, MAX_UNKNOWN).map((key) => {
      const name = key.slice(0, MAX_NAME)
      return {
        path: path === '' ? name : `${path}.${name}`,
        message: describeUnknownMember(name, listMembersAt(given.schema, at)),
      }
    })
  const isMissing = at.length > 0 && readAt(given.raw, at) === undefined && issue.code !== 'custom'
  if (isMissing) return [{ path, message: `is required${listChoices(issue)}` }]
  if (issue.code === 'invalid_union') {
    const meant = findMeantAlternative(issue.errors)
    if (meant !== undefined) return meant.flatMap((one) => describeIssue(one, at, given))
  }
  return [{ path, message: describeBound(issue) ?? issue.message.replace('LosslessNumber', 'number') }]
}

/** Describes a value that is too small, too big or no time; undefined for issues with a message of their own. */
function describeBound(issue: Issue): string | undefined {
  const isOwn = !/^(Too (small|big):|Invalid ISO)/.test(issue.message)
  if (isOwn) return undefined
  if (issue.code === 'invalid_format') return 'must be a time in ISO 8601, such as 2026-11-25T12:00:00Z'
  if (issue.code === 'too_small')
    return issue.minimum === 1 && issue.origin !== 'number' && issue.origin !== 'int'
      ? 'must not be empty'
      : `must ${describeCount(issue.origin, 'at least', issue.minimum)}`
  return issue.code === 'too_big'
    ? `must ${describeCount(issue.origin, 'at most', issue.maximum)}`
    : undefined
}

function describeCount(origin: string, side: 'at least' | 'at most', bound: number | bigint): string {
  if (origin === 'string') return `have ${side} ${bound} characters`
  return origin === 'array' || origin === 'set' ? `have ${side} ${bound} entries` : `be ${side} ${bound}`
}

/** The alternative that has the value's type, if there is one: its limits are what the value breaks. */
function findMeantAlternative(alternatives: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const isOtherType = ({ code, path }: Issue) => code === 'invalid_type' && path.length === 0
  const meant = alternatives.filter((issues) => issues.length > 0 && !issues.some(isOtherType))
  return meant.length === 1 ? meant[0] : undefined
}

function listChoices(issue: Issue): string {
  return issue.code === 'invalid_value' && issue.values.length > 1
    ? `: one of ${issue.values.join(', ')}`
    : ''
}

function describeUnknownMember(key: string, known: readonly string[]): string {
  const nearest = nearestTo(key, known)
  if (nearest !== null) return `is not known here; did you mean ${nearest}?`
  return known.length === 0 ? 'is not known here' : `is not known here; known are ${known.join(', ')}`
}

function readAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let at: unknown = raw
  for (const step of path) {
    if (typeof at !== 'object' || at === null) return at
    at = Reflect.get(at, step)
  }
  return at
}

/** Names of the members that a schema has at a path; empty where it is no plain object. */
function listMembersAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = unwrap(schema)
  for (const step of path) {
    if (at instanceof z.ZodObject) at = unwrap(at.shape[String(step)])
    else if (at instanceof z.ZodArray) at = unwrap(at.element)
    else return []
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : []
}

/** The schema within its wrappers: optional, null, default, and conversions of an input. */
function unwrap(schema: unknown): unknown {
  let at = schema
  while (
    at instanceof z.ZodOptional ||
    at instanceof z.ZodNullable ||
    at instanceof z.ZodDefault ||
    at instanceof z.ZodPipe
  )
    at = at instanceof z.ZodPipe ? at.in : at.unwrap()
  return at
}

/** The hint of an issue that must not simply be corrected; undefined without one. */
function findHint({ issues }: z.ZodError): string | undefined {
  const hints = issues.flatMap((issue) => (issue.code === 'custom' ? [issue.params?.hint] : []))
  return hints.find((hint) => typeof hint === 'string')
}
