import { describe, expect, it } from 'vitest'
import { listRedisHosts, parseSentinels } from '../../../src/core/base/redis-url.ts'

describe('URLs of Redis with Sentinels', () => {
  it.each([
    [
      'redis+sentinel://one/bursar',
      {
        sentinels: [{ host: 'one', port: 26379 }],
        name: 'bursar',
        username: '',
        password: '',
        database: 0,
        isEncrypted: false,
      },
    ],
    [
      'rediss+sentinel://ada:s%40cret@one:1,[::1]:2/my-primary/3',
      {
        sentinels: [
          { host: 'one', port: 1 },
          { host: '::1', port: 2 },
        ],
        name: 'my-primary',
        username: 'ada',
        password: 's@cret',
        database: 3,
        isEncrypted: true,
      },
    ],
  ])('parse %s', (url, expected) => {
    expect(parseSentinels(url)).toEqual(expected)
  })

  it.each([
    'redis+sentinel://one',
    'redis+sentinel://one,,two/bursar',
    'redis+sentinel://one:99999/bursar',
    'redis+sentinel://one/bursar/x',
    'redis+sentinel://a%@one/bursar',
    'http+sentinel://one/bursar',
    'redis://one',
  ])('reject %s', (url) => {
    expect(() => parseSentinels(url)).toThrow()
  })

  it('are shown without user and password', () => {
    expect(listRedisHosts('redis+sentinel://ada:secret@one,two:1/bursar')).toBe('one:26379, two:1')
    expect(listRedisHosts('redis://ada:secret@one:6379/3')).toBe('one:6379')
  })
})
