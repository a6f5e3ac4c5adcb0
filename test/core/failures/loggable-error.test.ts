import {
  BaseError,
  createPublicClient,
  custom,
  encodeFunctionData,
  parseAbi,
  RpcRequestError,
  toHex,
} from 'viem'
import { expect, it } from 'vitest'
import { Failure } from '../../../src/core/failures/failure.ts'
import { plainError } from '../../../src/core/failures/loggable-error.ts'
import { rootCause } from '../../../src/core/failures/root-cause.ts'

const [r, s] = [toHex('first half of it', { size: 32 }), toHex('second half of it', { size: 32 })]
const abi = parseAbi(['function permit(address owner, uint8 v, bytes32 r, bytes32 s)'])
const [address, account] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`] as const
const args = [account, 27, r, s] as const
const data = encodeFunctionData({ abi, args })

const client = createPublicClient({
  transport: custom(
    {
      request: async (body: { method: string }) =>
        Promise.reject(
          new RpcRequestError({
            body,
            url: 'http://node',
            error: { code: 3, message: `execution reverted in ${data}` },
          }),
        ),
    },
    { retryCount: 0 },
  ),
})

it.each([
  ['an estimate', () => client.estimateGas({ account, to: address, data })],
  ['a call', () => client.readContract({ address, abi, functionName: 'permit', args } as never)],
])('describes %s that failed without its signed arguments', async (_, attempt) => {
  const error = await attempt().then(
    () => new Error('it did not fail'),
    (cause: unknown) => new Failure('settlement_pending', 'It is not known yet.', {}, { cause }),
  )
  expect(error.cause).toBeInstanceOf(BaseError)
  expect(String(error.cause)).toContain(s.slice(2, 30))
  const errorText = JSON.stringify(plainError(error))
  for (const part of [r, s]) {
    expect(errorText).not.toContain(part.slice(2, 30))
    expect(rootCause(error)).not.toContain(part.slice(2, 30))
  }
  expect(plainError(error)).toMatchObject({
    type: 'Failure',
    message: expect.stringMatching(/^It is not known yet\.: .*execution reverted/is),
    stack: expect.stringMatching(/^\s+at /),
  })
})

it('keeps the code of an error, and its causes', () => {
  const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  expect(plainError(new Error('no database', { cause }))).toMatchObject({ message: 'no database: refused' })
  expect(plainError(cause)).toMatchObject({ type: 'Error', message: 'refused', code: 'ECONNREFUSED' })
  expect(plainError('text')).toBe('text')
})
