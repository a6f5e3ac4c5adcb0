import { describe, expect, it } from 'vitest'
import { sessionCookies } from '../../../src/server/http/authenticate.ts'
import { noon } from '../../kernel/scene.ts'

const session = { sessionToken: 'a.b.c', expiresAt: new Date(noon.getTime() + 900_500) }

describe('the session cookie', () => {
  it('is bound to its host and to https if the origin is https', () => {
    const [cookie = '', ...others] = sessionCookies('https://bursar.example', session, noon)
    expect(others).toEqual([])
    const [first, ...flags] = cookie.split('; ')
    expect(first).toBe('__Host-bursar_session=a.b.c')
    expect(flags.sort()).toEqual(['HttpOnly', 'Max-Age=900', 'Path=/', 'SameSite=Lax', 'Secure'])
  })

  it('has a plain name if the origin is http, and one with the port if there is one', () => {
    const flags = 'Max-Age=900; Path=/; HttpOnly; SameSite=Lax'
    expect(sessionCookies('http://127.0.0.1:8787', session, noon)).toEqual([
      `bursar_session=a.b.c; ${flags}`,
      `bursar_session_8787=a.b.c; ${flags}`,
    ])
    expect(sessionCookies('http://bursar.internal', session, noon)).toEqual([
      `bursar_session=a.b.c; ${flags}`,
    ])
  })

  it('expires at once when it is cleared, and never has a negative lifetime', () => {
    const old = { ...session, expiresAt: new Date(0) }
    expect(sessionCookies('https://bursar.example', null, noon)).toEqual([
      expect.stringMatching(/^__Host-bursar_session=; Max-Age=0;/),
    ])
    expect(sessionCookies('https://bursar.example', old, noon)).toEqual([
      expect.stringContaining('Max-Age=0;'),
    ])
  })
})
