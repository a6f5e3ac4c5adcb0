/** Pages that a sign-in may lead to: those of the gateway, and nothing that a browser could read as another origin. */
import { describe, expect, it } from 'vitest'
import { parseOwnPage } from '../../../../src/server/http/pages/client/own-page.ts'
import { consolePaths } from '../../../../src/server/http/pages/console.tsx'

describe('the page after a sign-in', () => {
  it('is any page of the console, with its query', () => {
    for (const path of consolePaths) {
      const page = path.replace(':id', 'apr_01jxyz-AB_c')
      expect(parseOwnPage(page)).toBe(page)
      const queried = `${page}?kind=card&from=2026-01-01T00:00:00Z&entry=a%2Fb`
      expect(parseOwnPage(queried)).toBe(queried)
    }
  })

  it('is a page that asks for a decision', () => {
    for (const page of ['/oauth/consent/abc_DEF-1', '/agents/connect/abc', '/devices/abc'])
      expect(parseOwnPage(page)).toBe(page)
  })

  const hostile = [
    '',
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\\/evil.example',
    '/%2Fevil.example',
    '/%5Cevil.example',
    '/%2e%2e//evil.example',
    '/agents/../..//evil.example',
    '/agents//evil.example',
    '/.evil.example',
    '/@evil.example',
    'https://evil.example',
    'https:evil.example',
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    '/javascript:alert(1)',
    'data:text/html,x',
    ' /',
    '/ ',
    '\t//evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/activity\n',
    '/activity#//evil.example',
    '/activity?a=b#c',
    '/activity?next=//evil.example',
    '/activity?a=\\evil',
    '/api/auth/logout',
    '/sign-in?next=/',
    '/sandbox/outbox',
    `/agents/${'a'.repeat(65)}`,
    `/activity?${'a'.repeat(513)}`,
  ]
  it.each(hostile)('is never %j', (text) => {
    expect(parseOwnPage(text)).toBeNull()
  })
})
