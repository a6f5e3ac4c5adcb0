/** Members of answers, which a view gets as JSON from its host. */
import type { BrokenRule } from '../words/policy.ts'
import type { Members } from './host.ts'

export function text(members: Members, name: string): string | null {
  const value = members[name]
  return typeof value === 'string' && value !== '' ? value : null
}

export function record(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** Rules that a call breaks. */
export function brokenRules(members: Members): readonly BrokenRule[] {
  const given = members.violations
  if (!Array.isArray(given)) return []
  return given.map(record).flatMap((one) => {
    const rule = text(one, 'rule')
    if (rule === null) return []
    const facts = ['limit', 'used', 'requested', 'remaining', 'resetsAt'] as const
    return [{ rule, ...Object.fromEntries(facts.map((name) => [name, text(one, name)])) }]
  })
}
