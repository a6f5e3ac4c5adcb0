import { describe, expect, it } from 'vitest'
import { fetchPublic } from '../../../../src/providers/public-fetch.ts'
import { fetchClientDocument } from '../../../../src/server/http/authorization-server/fetch-client-document.ts'

describe('client metadata documents', () => {
  it.each([
    'http://example.com/client.json',
    'http://127.0.0.1:3000/client.json',
    'https://[::1]/client.json',
    'https://2130706433/client.json',
    'https://localhost/client.json',
    'file:///etc/passwd',
  ])('are not fetched from %s', async (url) => {
    await expect(fetchClientDocument(url, fetchPublic)).rejects.toMatchObject({ problem: 'refused-url' })
    await expect(fetchClientDocument(new URL(url), fetchPublic)).rejects.toMatchObject({
      problem: 'refused-url',
    })
  })
})
