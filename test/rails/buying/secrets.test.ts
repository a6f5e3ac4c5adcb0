/** Which header fields of a purchase are logins, which no record keeps. */
import { expect, it } from 'vitest'
import { isSecretField, withoutSecrets } from '../../../src/rails/buying/secrets.ts'

const logins = [
  ...['Cookie', 'X-Api-Key', 'apikey', 'x-goog-api-key', 'X-RapidAPI-Key', 'Ocp-Apim-Subscription-Key'],
  ...[
    'x-functions-key',
    'X-Auth-Token',
    'x-auth',
    'Token',
    'x-amz-security-token',
    'X-Access-Key',
    'client-secret',
  ],
]

it.each(logins)('keeps %s out of records', (name) => {
  expect(isSecretField(name)).toBe(true)
  const url = 'https://seller.example/'
  expect(withoutSecrets({ url, headers: { [name]: 'secret', 'x-kind': 'weather' } })).toEqual({
    url,
    headers: { 'x-kind': 'weather' },
  })
})

it.each(['x-kind', 'content-type', 'x-page-token', 'x-idempotency-key', 'sort-key', 'x-author'])(
  'keeps %s, which says what is bought',
  (name) => {
    expect(isSecretField(name)).toBe(false)
  },
)
