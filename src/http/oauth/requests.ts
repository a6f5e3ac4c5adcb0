/** What a request to the authorization server says before the library reads it. */
import { authenticateAccessToken, isAccessToken } from '../../identity/oauth-tokens.ts'
import { isStorable, parseJson } from '../../json.ts'
import type { Services } from '../../kernel/context.ts'
import { type HttpContext, rawTargetOf } from '../request.ts'

/** The error of OAuth for a text that nothing can hold: U+0000 or half a surrogate pair; undefined: there is none. */
export function unstorableError(c: HttpContext): 'invalid_request' | 'invalid_client_metadata' | undefined {
  const [, query = ''] = rawTargetOf(c).split('?', 2)
  const text = Buffer.from(c.get('body')).toString('utf8')
  if (isJson(c)) return isStorableForm(query) && isStorableJson(text) ? undefined : 'invalid_client_metadata'
  return isStorableForm(query) && isStorableForm(text) ? undefined : 'invalid_request'
}

function isJson(c: HttpContext): boolean {
  return /^application\/json\b/i.test(c.req.header('content-type') ?? '')
}

function isStorableForm(text: string): boolean {
  return [...new URLSearchParams(text)].every(([name, value]) => isStorable(name) && isStorable(value))
}

function isStorableJson(text: string): boolean {
  try {
    JSON.parse(text)
  } catch {
    // What is no JSON is told so by the library.
    return true
  }
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}

/**
 * The body of a revocation. The library revokes what it stores, and access tokens it does not: in place of one stands the
 * grant's refresh token, so that the client is checked as for any other, and the key ends with it.
 * @param refreshTokenOf finds the one of a grant.
 * @see https://www.rfc-editor.org/rfc/rfc7009#section-2.1
 */
export async function revocationBody(
  c: HttpContext,
  { database, settings }: Pick<Services, 'database' | 'settings'>,
  refreshTokenOf: (grantId: string) => Promise<string | undefined>,
): Promise<Uint8Array> {
  const body = c.get('body')
  const form = new URLSearchParams(Buffer.from(body).toString('utf8'))
  const token = form.get('token') ?? ''
  if (!isAccessToken(token)) return body
  const principal = await authenticateAccessToken({ database, settings }, token, c.get('now')).catch(
    () => null,
  )
  const other = principal?.kind === 'key' ? await refreshTokenOf(principal.key.id) : undefined
  if (other === undefined) return body
  form.set('token', other)
  form.delete('token_type_hint')
  return Buffer.from(form.toString())
}
