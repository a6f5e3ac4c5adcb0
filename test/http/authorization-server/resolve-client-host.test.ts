/** Look-ups of untrusted host names, against a name server that answers some and ignores others. */
import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHostResolver } from '../../../src/http/authorization-server/resolve-client-host.ts'

/** Answers A questions for names that begin with "known", and ignores all others. */
function answerTo(question: Buffer): Buffer | null {
  const name = question.subarray(12).toString('latin1')
  const type = question.readUInt16BE(question.indexOf(0, 12) + 1)
  if (!name.includes('known')) return null
  const isAddress = type === 1
  const header = Buffer.from(question.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(isAddress ? 1 : 0, 6)
  header.writeUInt16BE(0, 8)
  header.writeUInt16BE(0, 10)
  const questionSection = question.subarray(12, question.indexOf(0, 12) + 5)
  const record = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 93, 184, 216, 34])
  return Buffer.concat([header, questionSection, ...(isAddress ? [record] : [])])
}

describe('look-ups of untrusted host names', () => {
  let socket: Socket
  let servers: string[]
  beforeAll(async () => {
    socket = createSocket('udp4')
    socket.on('message', (question, from) => {
      const answer = answerTo(question)
      if (answer !== null) socket.send(answer, from.port, from.address)
    })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    servers = [`127.0.0.1:${socket.address().port}`]
  })
  afterAll(() => socket.close())

  it('return the name server’s answer', async () => {
    expect(await createHostResolver({ servers })('known.example.com')).toEqual([
      { address: '93.184.216.34', family: 4 },
    ])
  })

  it('time out, and do not delay our own look-ups meanwhile', async () => {
    const resolve = createHostResolver({ servers, timeoutMs: 600, maxAtOnce: 100 })
    const startedAt = performance.now()
    const lookups = Promise.allSettled(
      Array.from({ length: 50 }, (_, index) => resolve(`silent-${index}.example.com`)),
    )
    await lookup('localhost')
    expect(performance.now() - startedAt).toBeLessThan(500)
    expect((await lookups).every(({ status }) => status === 'rejected')).toBe(true)
    expect(performance.now() - startedAt).toBeLessThan(1_500)
  })

  it('run a few at once, and start the next when one ends', async () => {
    const resolve = createHostResolver({ servers, timeoutMs: 300, maxAtOnce: 2 })
    const silent = [resolve('silent-1.example.com'), resolve('silent-2.example.com')]
    await expect(resolve('known.example.com')).rejects.toThrow('too many host names')
    await Promise.allSettled(silent)
    expect(await resolve('known.example.com')).toHaveLength(1)
  })

  it.each(['localhost', 'localhost.', 'postgres'])('reject the single label %s', async (host) => {
    await expect(createHostResolver({ servers })(host)).rejects.toThrow('not on the public internet')
  })
})
