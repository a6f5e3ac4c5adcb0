/** A broadcast whose answer was lost is never taken for a rejection. */
import { HttpRequestError, RpcRequestError, TransactionNotFoundError } from 'viem'
import { describe, expect, it } from 'vitest'
import { requireAcceptedByNode } from '../../../src/chain/relay/relayer.ts'
import { createNodeClient, localNodeOptions } from '../../../src/chain/rpc/client.ts'
import { isUnknownBroadcast } from '../../../src/providers/chain/port.ts'

const hash = `0x${'a'.repeat(64)}` as const
const url = 'http://127.0.0.1:1'
const rejection = new RpcRequestError({ body: {}, url, error: { code: -32_000, message: 'nonce too low' } })
const lost = new HttpRequestError({ url, details: 'connection reset' })

/** Judges an error of sending when the node answers so to the question for the transaction. */
async function judge(sending: unknown, answer: Error | undefined): Promise<unknown> {
  const client = createNodeClient(localNodeOptions('base-sepolia', url))
  const getTransaction = async () => {
    if (answer !== undefined) throw answer
    return { hash }
  }
  const asked = Object.assign(Object.create(client), { getTransaction })
  return requireAcceptedByNode(asked, hash, sending).then(
    () => 'accepted',
    (error: unknown) => (isUnknownBroadcast(error) ? 'unknown' : error),
  )
}

describe('a transaction that was not sent without error', () => {
  const absent = new TransactionNotFoundError({ hash })
  it('accepts a broadcast without an answer if the node has its transaction', async () => {
    expect(await judge(rejection, undefined)).toBe('accepted')
    expect(await judge(lost, undefined)).toBe('accepted')
  })

  it('rejects a broadcast only if the node said so and does not have its transaction', async () => {
    expect(await judge(rejection, absent)).toBe(rejection)
  })

  it.each([
    ['the answer was lost', lost, absent],
    ['the node rejects the question', rejection, new Error('rate limited')],
    ['the question gets no answer', rejection, lost],
  ])('is unknown if %s', async (_why, sending, answer) => {
    expect(await judge(sending, answer)).toBe('unknown')
  })
})
