/** Every member that can be changed declares the direction in which it loosens. */
import { describe, expect, it } from 'vitest'
import { policyDirections } from '../../policies/loosening.ts'
import { spendPolicy } from '../../policies/policy.ts'
import { tools } from '../../tools/index.ts'
import { listDirections, listMembers } from './declared-members.ts'

const changing = tools.filter(({ route, proof }) => /^(PATCH|PUT) /.test(route) || proof === 'loosening')
const without = (name: string) => (path: string) => path === name || path.startsWith(`${name}.`)

describe('an operation that changes what exists', () => {
  it.each(changing.map((tool) => [tool.name, tool] as const))(
    '%s needs a proof always, or declares a direction for each member',
    (_name, { proof, loosens, input }) => {
      expect(['step-up', 'loosening']).toContain(proof)
      if (proof === 'step-up') return
      const isPolicy = without('policy')
      const declared = [...listDirections(loosens ?? {}).keys()].filter((path) => !isPolicy(path))
      const members = listMembers(input).filter((path) => !isPolicy(path))
      expect(members.length).toBeGreaterThan(0)
      expect(declared.sort()).toEqual([...members].sort())
    },
  )

  it('declares a direction for each member of a policy', () => {
    const declared = [...listDirections({ ...policyDirections }).keys()]
    expect(declared.sort()).toEqual([...listMembers(spendPolicy)].sort())
  })
})
