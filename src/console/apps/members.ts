/** Members of answers, which a view gets as JSON from its host. */
import type { BrokenRule } from '../words/policy.ts'
import type { Members } from './host.ts'

export function readText(members: Members, name: string): string | null {
  const value = members[name]
  return typeof value === 'string' && value !== '' ? value : null
}

export function readRecord(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** Rules that a call breaks. */
export function listBrokenRules(members: Members): readonly BrokenRule[] {
  const given = members.violations
  if (!Array.isArray(given)) return []
  return given.map(readRecord).flatMap((one) => {
    const rule = readText(one, 'rule')
    if (rule === null) return []
    const facts = ['limit', 'used', 'requested', 'remaining', 'resetsAt'] as const
    return [{ rule, ...Object.fromEntries(facts.map((name) => [name, readText(one, name)])) }]
  })
}
