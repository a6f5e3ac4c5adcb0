import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseJson } from '../../../src/core/base/json.ts'
import {
  type Asset,
  amountMismatch,
  assetDecimals,
  decimalAmount,
  decimalOf,
  decimalOfUnits,
  moneyOf,
} from '../../../src/core/money/money.ts'

const assets = fc.constantFrom<Asset>('USDC', 'USDT', 'EURC', 'PYUSD', 'USD', 'EUR', 'GBP', 'INR')
const maxWhole = 10n ** 12n
const wholes = fc.bigInt({ min: 0n, max: maxWhole - 1n })
const digits = (least: number, most: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: least, maxLength: most }).map((list) => list.join(''))

/** A decimal that fits an asset, with optional trailing zeros. */
const fitting = assets.chain((asset) =>
  fc
    .record({ asset: fc.constant(asset), whole: wholes, fraction: digits(0, assetDecimals[asset]) })
    .map(({ whole, fraction }) => ({
      asset,
      whole,
      fraction,
      text: fraction === '' ? `${whole}` : `${whole}.${fraction}`,
    })),
)
const withoutNeedlessZeros = (text: string) =>
  text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text

/** The three notations of an amount in a request. */
const listForms = (text: string): readonly [form: string, value: unknown][] => [
  ['a string', text],
  ['a number of a JSON document', parseJson(text)],
  ['a string of a JSON document', parseJson(JSON.stringify(text))],
]

describe('money', () => {
  it('lets no later check see a text that is no amount', () => {
    const seen: unknown[] = []
    const order = z.strictObject({ amount: decimalAmount }).superRefine((checked) => {
      seen.push(checked.amount)
    })
    for (const wrong of ['x'.repeat(65), '1'.repeat(65), '-1', '1e5', '', null, {}])
      expect(order.safeParse({ amount: wrong }).success).toBe(false)
    expect(seen.filter((one) => typeof one !== 'string' || !/^\d+(\.\d+)?$/.test(one))).toEqual([])
  })

  it('round-trips a decimal, except for trailing zeros', () => {
    fc.assert(
      fc.property(fitting, ({ asset, text }) => {
        expect(decimalOf(moneyOf(asset, text))).toBe(withoutNeedlessZeros(text))
      }),
    )
  })

  it('round-trips units', () => {
    const units = fc.bigInt({ min: 0n, max: 10n ** 30n })
    fc.assert(
      fc.property(assets, units, (asset, count) => {
        expect(moneyOf(asset, decimalOf({ asset, units: count }))).toEqual({ asset, units: count })
      }),
    )
  })

  it('is never rounded: its units are the decimal times ten to the digits, exactly', () => {
    fc.assert(
      fc.property(fitting, ({ asset, whole, fraction, text }) => {
        const scale = 10n ** BigInt(assetDecimals[asset])
        const part = BigInt(fraction.padEnd(assetDecimals[asset], '0'))
        expect(moneyOf(asset, text).units).toBe(whole * scale + part)
      }),
    )
  })

  it('rejects one digit more than the asset has, even a zero', () => {
    fc.assert(
      fc.property(assets, wholes, digits(1, 20), (asset, whole, more) => {
        const text = `${whole}.${'0'.repeat(assetDecimals[asset])}${more}`
        expect(amountMismatch(text, asset)).toContain('not rounded')
        expect(() => moneyOf(asset, text)).toThrow(RangeError)
      }),
    )
  })

  it.each(['', '-1', '+1', '1e2', '.5', '1.', '01', '1,5', ' 1', '1 ', '٣', 'NaN', '0x10', '1.5.5', '1_000'])(
    'rejects %j',
    (text) => {
      expect(() => moneyOf('USDC', text)).toThrow(RangeError)
    },
  )

  it('is written with its sign and without an empty fraction', () => {
    expect(decimalOfUnits(-1_500_000n, 6)).toBe('-1.5')
    expect(decimalOfUnits(-1n, 6)).toBe('-0.000001')
    expect(decimalOfUnits(0n, 6)).toBe('0')
    expect(decimalOfUnits(1200n, 0)).toBe('1200')
    expect(decimalOfUnits(100n, 2)).toBe('1')
  })
})

describe('an amount on the wire', () => {
  it('is accepted as a string, a number and a number’s text, digit for digit', () => {
    fc.assert(
      fc.property(fitting, ({ text, whole, fraction }) => {
        fc.pre(whole > 0n || /[1-9]/.test(fraction))
        for (const [form, value] of listForms(text)) {
          const { success, data = '' } = decimalAmount.safeParse(value)
          expect([form, success]).toEqual([form, true])
          expect(withoutNeedlessZeros(data)).toBe(withoutNeedlessZeros(text))
        }
      }),
    )
  })

  it('keeps every written digit, so that excess digits are detected', () => {
    fc.assert(
      fc.property(wholes, digits(7, 40), (whole, fraction) => {
        fc.pre(/[1-9]/.test(fraction))
        const text = `${whole}.${fraction}`.slice(0, 60)
        fc.pre(text.length > `${whole}.`.length + 6 && /[1-9]/.test(text))
        for (const [, value] of listForms(text))
          expect(amountMismatch(decimalAmount.parse(value), 'USDC')).toBeDefined()
      }),
    )
  })

  const refused: readonly [name: string, texts: readonly string[], why: RegExp][] = [
    ['a negative', ['-1', '-0.5', '-0'], /no sign/],
    ['an exponent beyond any amount', ['1e400', '1e-400'], /no exponent/],
    ['zero', ['0', '0.0', '0.000000'], /above zero/],
    ['more than 10^12', ['1000000000000.000001', '1000000000001', '9'.repeat(40)], /not be over/],
  ]
  it.each(refused)('is rejected as %s, in any notation', (_name, texts, why) => {
    for (const [form, value] of texts.flatMap(listForms)) {
      const { success, error } = decimalAmount.safeParse(value)
      expect([form, value, success]).toEqual([form, value, false])
      expect(error?.issues[0]?.message).toMatch(why)
    }
  })

  it('may have an exponent as a number, which is exact, and never as a string', () => {
    for (const [text, plain] of [
      ['1e2', '100'],
      ['1E2', '100'],
      ['1.5e0', '1.5'],
      ['1e-05', '0.00001'],
      ['1e-7', '0.0000001'],
      ['10e-7', '0.000001'],
      ['12.5e+3', '12500'],
      ['123456789012345678e-6', '123456789012.345678'],
      ['1e12', '1000000000000'],
    ] as const) {
      expect([text, decimalAmount.parse(parseJson(text))]).toEqual([text, plain])
      expect(decimalAmount.safeParse(text).success).toBe(false)
    }
    for (const over of ['1e13', '1e21', '-1e2', '0e5'])
      expect([over, decimalAmount.safeParse(parseJson(over)).success]).toEqual([over, false])
  })

  it('may be 10^12 itself', () => {
    for (const [, value] of ['1000000000000', '1000000000000.000000'].flatMap(listForms))
      expect(moneyOf('USDC', decimalAmount.parse(value)).units).toBe(maxWhole * 1_000_000n)
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a boolean', true],
    ['a list', ['1']],
    ['an object', { amount: '1' }],
    ['an object posing as a number', { isLosslessNumber: true, value: '5' }],
    ['an object with its own text', { isLosslessNumber: true, toString: '5' }],
    ['not a number', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a bigint', 5n],
    ['a text of a thousand digits', '1'.repeat(1000)],
    ['a sign', '+1'],
    ['a thousands separator', '1,000'],
    ['a hexadecimal number', '0x1'],
    ['a space', '1 '],
    ['a line break', '1\n'],
    ['digits of another script', '١'],
  ])('is rejected as %s', (_name, value) => {
    expect(decimalAmount.safeParse(value).success).toBe(false)
  })
})

describe('a rejected amount', () => {
  it.each(['1e5', '-1', '0', 'x', '1000000000001'])(
    'a rejected amount of %s is not checked further',
    (amount) => {
      const seen: unknown[] = []
      const schema = z.object({ amount: decimalAmount }).superRefine((value) => void seen.push(value))
      expect(schema.safeParse({ amount }).success).toBe(false)
      expect(seen).toEqual([])
    },
  )
})
