import { describe, expect, it } from 'vitest'
import { sessionCookie } from '../../src/http/authenticate.ts'
import { noon } from '../kernel/scene.ts'

const session = { sessionToken: 'a.b.c', expiresAt: new Date(noon.getTime() + 900_500) }

describe('the session cookie', () => {
  it('is bound to its host and to https if the origin is https', () => {
    const [first, ...flags] = sessionCookie('https://bursar.example', session, noon).split('; ')
    expect(first).toBe('__Host-bursar_session=a.b.c')
    expect(flags.sort()).toEqual(['HttpOnly', 'Max-Age=900', 'Path=/', 'SameSite=Lax', 'Secure'])
  })

  it('has a plain name if the origin is http', () => {
    expect(sessionCookie('http://127.0.0.1:8787', session, noon)).toBe(
      'bursar_session=a.b.c; Max-Age=900; Path=/; HttpOnly; SameSite=Lax',
    )
  })

  it('expires at once when it is cleared, and never has a negative lifetime', () => {
    expect(sessionCookie('https://bursar.example', null, noon)).toMatch(/^__Host-bursar_session=; Max-Age=0;/)
    expect(sessionCookie('https://bursar.example', { ...session, expiresAt: new Date(0) }, noon)).toContain(
      'Max-Age=0;',
    )
  })
})
