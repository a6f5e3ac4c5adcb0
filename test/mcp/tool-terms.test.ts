import { describe, expect, it } from 'vitest'
import { toListedTool } from '../../mcp/listed-tool.ts'
import { createToolTerms } from '../../mcp/tool-terms.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'

const catalogue = buildCatalogue(tools, { mode: 'sandbox', guests: true })
const inToolTerms = createToolTerms(catalogue)

describe('routes in hints and descriptions over MCP', () => {
  it.each([
    ['Look at GET /api/cards in a minute.', 'Look at cards_list in a minute.'],
    ['Poll GET /api/approvals/{id}.', 'Poll approvals_get.'],
    ['Poll GET /api/approvals/apr_1, or wait.', 'Poll approvals_get {"id":"apr_1"}, or wait.'],
    [
      'POST /api/security/mfa {"action":"enroll"} first.',
      'POST /api/security/mfa {"action":"enroll"} first.',
    ],
  ])('turns %s into %s', (text, expected) => {
    expect(inToolTerms(text)).toBe(expected)
  })

  it('name routes of operations that are no tools, and nothing else', () => {
    const listed = catalogue
      .filter(({ tool }) => tool.mcp)
      .map((entry) => JSON.stringify(toListedTool(entry, [], inToolTerms)))
    const mentioned = listed
      .flatMap((text) => [...text.matchAll(/\b(?:GET|POST|PUT|PATCH|DELETE) \/api\/[\w{}/-]*[\w}]/g)])
      .map(([route]) => route)
    const withoutTool = tools.filter((tool) => !tool.mcp).map(({ route }): string => route)
    expect(mentioned.filter((route) => !withoutTool.includes(route))).toEqual([])
  })
})
