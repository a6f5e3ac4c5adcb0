import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, parseJson, toJson } from '../../../src/core/base/json.ts'

describe('parseJson', () => {
  it('matches JSON.parse on every document that JavaScript itself writes', () => {
    const documents = fc
      .jsonValue({ maxDepth: 5 })
      .filter((value) => !JSON.stringify(value).includes('__proto__'))
    fc.assert(
      fc.property(documents, (value) => {
        const text = JSON.stringify(value)
        expect(parseJson(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it.each(['1.10', '1e2', '0.10000000000000000001', '12345678901234567890', '-0', '1E400', '1.0'])(
    'preserves the text of %s, which a JavaScript number would not',
    (text) => {
      expect(String(parseJson(text))).toBe(text)
      expect(typeof parseJson(text)).toBe('object')
    },
  )

  it.each(['1', '-1.5', '0.1', '1000000000000', '9007199254740991'])('reads %s as a number', (text) => {
    expect(parseJson(text)).toBe(Number(text))
  })

  it.each([
    ['with different values', '{"amount":"1","amount":"2"}'],
    ['with equal values', '{"amount":"1","amount":"1"}'],
    ['once escaped', '{"amount":1,"\\u0061mount":1}'],
    ['deep inside', '[{"a":{"b":[],"b":[]}}]'],
    ['with equal objects', '{"a":{"b":1},"a":{"b":1}}'],
  ])('rejects a duplicate member %s', (_name, text) => {
    expect(() => parseJson(text)).toThrow(/occurs twice/)
  })

  it('accepts the same name in different objects, and colons within texts', () => {
    const text = '[{"a":1},{"a":1,"b:c":"d:\\":e"}]'
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it.each(['{"__proto__":{"isAdmin":true}}', '{"a":[{"__proto__":1}]}', '{"\\u005f_proto__":1}'])(
    'rejects %s',
    (text) => {
      expect(() => parseJson(text)).toThrow(SyntaxError)
    },
  )

  it('accepts names that objects inherit', () => {
    expect(parseJson('{"constructor":1,"toString":2,"hasOwnProperty":3}')).toEqual(
      JSON.parse('{"constructor":1,"toString":2,"hasOwnProperty":3}'),
    )
  })

  it.each([
    ['a zero character', '{"name":"a\\u0000b"}'],
    ['half a surrogate pair', '["\\ud800"]'],
    ['the other half', '"\\udc00x"'],
    ['half a pair in a name', '{"\\ud83d":1}'],
  ])('rejects %s, which no database stores', (_name, text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError)
  })

  it('accepts complete surrogate pairs', () => {
    expect(parseJson('"\\ud83d\\ude00 😀"')).toBe('😀 😀')
  })

  it('rejects nesting deeper than 64, and ignores brackets within texts', () => {
    const nest = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect(() => parseJson(nest(64))).not.toThrow()
    expect(() => parseJson(nest(65))).toThrow(/nested deeper/)
    expect(() => parseJson('{"a":'.repeat(65))).toThrow(/nested deeper/)
    expect(parseJson(JSON.stringify(nest(100)))).toBe(nest(100))
    expect(parseJson(JSON.stringify(`\\"${nest(100)}`))).toBe(`\\"${nest(100)}`)
  })

  it.each(['', ' ', '{', '[1,]', '{"a":1,}', "{'a':1}", 'NaN', '01', '+1', '1.', '\ufeff{}', '{} x', '"\t"'])(
    'rejects %j with a SyntaxError',
    (text) => {
      expect(() => parseJson(text)).toThrow(SyntaxError)
    },
  )
})

describe('canonicalJson', () => {
  it('matches the example of RFC 8785, section 3.2.2', () => {
    const value = {
      numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  it('sorts by UTF-16 code units, as in RFC 8785, section 3.2.3', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    }
    const names = [...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, name]) => name)
    expect(names).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ])
  })

  it('is equal for the same members in any order', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse())
        expect(canonicalJson(turned)).toBe(canonicalJson(value))
      }),
    )
  })

  it('equals an independent implementation of RFC 8785', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value))
      }),
    )
  })

  it('writes numbers as they were sent, as texts, and nothing of members that JSON leaves out', () => {
    const value = {
      sent: parseJson('[1.10, 12345678901234567890, 1]'),
      left: [undefined, () => 1],
      out: () => 1,
    }
    expect(canonicalJson(value)).toBe('{"left":[null,null],"sent":["1.10","12345678901234567890",1]}')
    expect(canonicalJson(value)).toBe(canonicalize(toJson(value)))
  })

  it('writes bigints and dates as texts, and omits undefined members', () => {
    expect(canonicalJson({ units: 10n ** 20n, at: new Date(0), absent: undefined })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","units":"100000000000000000000"}',
    )
    expect(canonicalJson(undefined)).toBe('null')
  })
})

describe('long texts', () => {
  const long = 'y"\\\n\u00e9'.repeat(3_000)

  it('are parsed as short ones are', () => {
    for (const value of [long, [long], { [long]: 1 }, { a: [long, 1, { b: `${long}\\` }], c: 'x"' }])
      expect(parseJson(JSON.stringify(value, null, 1))).toEqual(value)
  })

  it.each([
    [`{"a":"${'x'.repeat(5_000)}\n"}`, 'a long text is not a JSON string'],
    [`{"a":"${'x'.repeat(5_000)}`, 'End of string'],
    [`{"a":"${'x'.repeat(5_000)}","a":"${'x'.repeat(5_000)}"}`, 'occurs twice'],
    [`{"a":"${'x'.repeat(5_000)}\\u0000"}`, 'U+0000'],
    [`{"a":"${'x'.repeat(5_000)}\\ud800"}`, 'unpaired surrogate'],
    [`{"a" "${'x'.repeat(5_000)}"}`, 'Colon'],
  ])('are refused as short ones are (%#)', (text, problem) => {
    expect(() => parseJson(text)).toThrow(problem)
  })
})

describe('toJson', () => {
  it('returns a plain copy, equal to a round trip over the wire', () => {
    expect(toJson({ at: new Date(0), absent: undefined, list: [undefined] })).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      list: [null],
    })
  })

  it('writes a number that was kept as text as its digits', () => {
    expect(toJson(parseJson('{"amount":120.10,"list":[1e2,7]}'))).toEqual({
      amount: '120.10',
      list: ['1e2', 7],
    })
  })
})
