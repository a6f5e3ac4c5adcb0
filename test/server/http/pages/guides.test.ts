import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { guideGroups } from '../../../../src/server/http/pages/docs/guides.ts'

/** Pages for people who change the program. */
const forContributors = ['CONTRIBUTING', 'SECURITY', 'architecture', 'testing']

describe('the guides of a gateway', () => {
  it('include every page of docs/ that is not for contributors', () => {
    const served = guideGroups.flatMap(([, guides]) => guides.map(([slug]): string => slug))
    const written = readdirSync('docs').flatMap((name) => /^(.*)\.md$/.exec(name)?.[1] ?? [])
    expect([...served, ...forContributors].sort()).toEqual(written.sort())
  })
})
