import { describe, expect, it } from 'vitest'
import { splitHosts } from '../../../src/core/base/host-urls.ts'

describe('URLs with several hosts', () => {
  it.each([
    ['postgres://one/db', ['postgres://one/db']],
    [
      'postgres://ada:s%40cret@one:5432,two:5433/db?sslmode=require',
      [
        'postgres://ada:s%40cret@one:5432/db?sslmode=require',
        'postgres://ada:s%40cret@two:5433/db?sslmode=require',
      ],
    ],
    ['postgresql://[::1]:5432,127.0.0.1/db', ['postgresql://[::1]:5432/db', 'postgresql://127.0.0.1/db']],
  ])('splits %s', (url, expected) => {
    expect(splitHosts(url)).toEqual(expected)
  })

  it.each(['postgres://one:99999,two/db', 'postgres://one,,two/db', 'nonsense'])('rejects %s', (url) => {
    expect(() => splitHosts(url)).toThrow(TypeError)
  })
})
